const createdAtS = Math.floor(Date.now() / 1000);

/** What OpenAI's API says of every model. */
export const modelHead = (name: string): object => ({
  id: name,
  object: "model",
  created: createdAtS,
  owned_by: "sheaf",
});
