// The embedded database by default, a server when there is a URL: Sheaf takes either client as it is.
export async function openDatabase(url = process.env.DATABASE_URL) {
  if (url) {
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({ connectionString: url, statement_timeout: 10_000 });
    return { client: pool, run: (text) => pool.query(text), close: () => pool.end() };
  }
  const { PGlite } = await import("@electric-sql/pglite");
  const db = await PGlite.create(); // PGlite.create("./data") keeps it on disk.
  return { client: db, run: (text) => db.exec(text), close: () => db.close() };
}
