const poisons = {
  "a number below 0": -1,
  "no number": "many",
  "a number beyond the column's": 2 ** 40,
  "a function": () => 1,
};

/**
 * The rows that were sent, and what their callers got: `fate` is "stored", "refused" (nothing of it may be there) or
 * "unknown" (it may be there, once).
 */
export class RowsSent {
  #draw;
  #calls = new Map();

  constructor(draw) {
    this.#draw = draw;
  }

  next() {
    const { chance, below, of } = this.#draw;
    const id = this.#calls.size + 1;
    const call = { row: { id, number: below(2 ** 31), note: `"note" {${id}}, \\` }, isPoison: chance(0.01), fate: "unknown" };
    if (call.isPoison && chance(0.2)) call.row.note = "nothing\0at all";
    else if (call.isPoison) call.row.number = poisons[of(Object.keys(poisons))];
    this.#calls.set(id, call);
    return call;
  } // prettier-ignore

  isOwn({ row }, stored) {
    return Number(stored.id) === row.id && stored.number === row.number && stored.note === row.note;
  }

  /** Reports to the ledger where the table differs from what callers got. */
  compare(stored, ledger) {
    const counts = new Map();
    for (const row of stored) {
      const id = Number(row.id);
      counts.set(id, (counts.get(id) ?? 0) + 1);
      const call = this.#calls.get(id);
      if (call === undefined || !this.isOwn(call, row)) ledger.found("wrong", `row ${id}`, JSON.stringify(row));
    }
    for (const [id, { fate }] of this.#calls) {
      const count = counts.get(id) ?? 0;
      if (count > 1) ledger.found("twice", `row ${id}`, `it stands there ${count} times`);
      if (fate === "stored" && count === 0) ledger.found("lost", `row ${id}`, "it was confirmed and is not there");
      if (fate === "refused" && count > 0) ledger.found("wrong", `row ${id}`, "it was refused and is there");
    }
  }
}

/** Versions of a few keys, one after the other: the last that was confirmed, or one after it, must be what is stored. */
export class VersionsSent {
  #draw;
  #version = 0;
  /** By key, in the order in which they were sent. */
  #calls = new Map();

  constructor(draw) {
    this.#draw = draw;
  }

  next() {
    const { chance, below } = this.#draw;
    const key = below(60);
    const isPoison = chance(0.01);
    const version = ++this.#version;
    const call = { row: { key, version: isPoison ? -version : version }, isPoison, fate: "unknown" };
    const calls = this.#calls.get(key) ?? [];
    this.#calls.set(key, calls);
    calls.push(call);
    return call;
  }

  isOwn({ row }, stored) {
    return stored.key === row.key && Number(stored.version) === row.version;
  }

  compare(stored, ledger) {
    const byKey = new Map(stored.map((row) => [row.key, row]));
    for (const [key, calls] of this.#calls) {
      const row = byKey.get(key);
      const name = `version of key ${key}`;
      const lastConfirmed = calls.findLastIndex(({ fate }) => fate === "stored");
      const found = row === undefined ? -1 : calls.findIndex((call) => this.isOwn(call, row));
      if (row !== undefined && found < 0) ledger.found("wrong", name, `${row.version} was never sent`);
      else if (found >= 0 && calls[found].fate === "refused")
        ledger.found("wrong", name, `${row.version} was refused and is there`);
      else if (found < lastConfirmed)
        ledger.found("lost", name, `${calls[lastConfirmed].row.version} was confirmed, ${row?.version} is there`);
    }
  }
}
