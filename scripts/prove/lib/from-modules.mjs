/** A loader: each entry point of the library is the module behind it, instead of the published bundle. */
import { libraryEntries } from "../../lib/bundle.mjs";

const folder = "/packages/sheaf/lib/";
const modules = new Map(libraryEntries().map(({ name, module }) => [`${name}.js`, `../dist/${module}.js`]));

export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const at = resolved.url.indexOf(folder) + folder.length;
  const module = at < folder.length ? undefined : modules.get(resolved.url.slice(at));
  return module === undefined ? resolved : { ...resolved, url: new URL(module, resolved.url.slice(0, at)).href };
}
