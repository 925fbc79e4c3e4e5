/** Whose requests must never share one. */
export const tenants = ["alpha", "beta"].map((name) => ({ name, key: `sk-${name}-5f0c2a91d7` }));

/** A text that says whose it is, and which; one that the API refuses says that too. */
export const textOf = (tenant, id, isPoison) => `${tenant.name}|${id}|${isPoison ? "poison" : "\u202Etext \u{1F422}"}`;

export const tenantOf = (text) => tenants.find(({ name }) => text.startsWith(`${name}|`));
export const isPoison = (text) => text.endsWith("|poison");
