// The server serves the package's own file under this name.
// oxlint-disable-next-line import/no-default-export
export { default } from "uplot";
