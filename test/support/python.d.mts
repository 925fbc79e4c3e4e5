/** For `test(name, { skip })`: false where `python3` is 3.9 or newer, else why not. Where CI=true its absence is an error. */
export const skipWithoutPython: string | false;
