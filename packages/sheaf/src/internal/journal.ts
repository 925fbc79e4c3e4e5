export { claimFolder, type FolderClaim } from "../journal/claim.ts";
export { Journal, type JournalOptions } from "../journal/journal.ts";
