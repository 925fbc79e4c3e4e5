/** Source text without its comments; strings and template literals stay. */
export function withoutComments(source) {
  return source.replace(/("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[^]*?\*\//g, "$1");
}

const importForms = [
  /(?:^|[;}\n])\s*(?:import|export)\s+(?:type\s+)?(?:[\w$*]|\{)[^;"'`]*?\bfrom\s*["']([^"']+)["']/g,
  /(?:^|[;}\n])\s*import\s*["']([^"']+)["']/g,
  /\bimport\s*\(\s*["'`]([^"'`]+)["'`]\s*[,)]/g,
  /\brequire\s*\(\s*["'`]([^"'`]+)["'`]\s*\)/g,
  /\bnew URL\s*\(\s*["'`](\.[^"'`]+)["'`]\s*,\s*import\.meta\.url/g,
];

/** Every module that a TypeScript or JavaScript source names: static, dynamic, type-only, re-exports and worker URLs. */
export function importsOf(source) {
  const text = withoutComments(source);
  return [...new Set(importForms.flatMap((form) => [...text.matchAll(form)].map(([, specifier]) => specifier)))];
}
