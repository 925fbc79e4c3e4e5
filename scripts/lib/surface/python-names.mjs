/** The names of sheaf_worker's `__all__`, and the parameters of its functions with their defaults: "serve(inputs)" → `"json"`. */
export function pythonNames(source) {
  const [, list] = /^__all__ = \[([^\]]+)\]/m.exec(source);
  const names = [...list.matchAll(/"(\w+)"/g)].map(([, name]) => name);
  return Object.fromEntries(names.flatMap((name) => [[name, kindOf(source, name)], ...parametersOf(source, name)]));
}

const kindOf = (source, name) => new RegExp(`^(def|class) ${name}\\b`, "m").exec(source)[1];

function parametersOf(source, name) {
  const [, text] = new RegExp(`^def ${name}\\(([^]*?)\\) ->`, "m").exec(source) ?? [undefined, ""];
  return withoutBrackets(text)
    .split(",")
    .map((parameter) => /^\s*(\w+)\s*(?::[^=]*)?(?:=\s*(.+?)\s*)?$/.exec(parameter))
    .filter((match) => match !== null)
    .map(([, parameter, value]) => [`${name}(${parameter})`, value ?? "required"]);
}

/** The types of parameters without their own parameters, whose commas separate nothing: `Callable[..., Any]`. */
function withoutBrackets(text) {
  const shorter = text.replaceAll(/\[[^[\]]*\]/g, "");
  return shorter === text ? text : withoutBrackets(shorter);
}
