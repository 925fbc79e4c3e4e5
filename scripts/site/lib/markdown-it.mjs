/** Adapts the renderer of Markdown (markdown-it) to documents that are not written for VitePress. */
export function adapt(md) {
  // "(8)" stays as it is written.
  md.core.ruler.disable("emoji");
  const { code_inline: code } = md.renderer.rules;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    // Vue would compute `{{words 3}}`.
    tokens[index].attrSet("v-pre", "");
    return code(tokens, index, ...rest);
  };
  // The corner of a table may be empty; a heading may not.
  md.core.ruler.push("empty-headings", ({ tokens }) => {
    for (const [index, { type, content }] of tokens.entries())
      if (type === "inline" && content === "" && tokens[index - 1].type === "th_open")
        for (const cell of [tokens[index - 1], tokens[index + 1]]) cell.tag = "td";
  });
}
