// Parts of a shape's text, as the record of the public surface has it: "deprecated optional = 32", "function (a) or function (a, b?)".

/** Between the shapes of a name that is declared more than once. */
export const overload = " or ";

/** Before the shape of a name with `@deprecated`. */
export const deprecated = "deprecated ";
