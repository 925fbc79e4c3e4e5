const createdAtS = Math.floor(Date.now() / 1000);

/** The fields of every model in OpenAI's API. */
export const modelHead = (name: string): object => ({
  id: name,
  object: "model",
  created: createdAtS,
  owned_by: "sheaf",
});
