// Gives back what it gets; of an image, its first byte. The work is nothing: what is measured is the way.
import { defineWorker } from "sheaf/node";

export default defineWorker({
  run: (items) => (items[0] instanceof Uint8Array ? items.map((image) => image[0]) : items),
});
