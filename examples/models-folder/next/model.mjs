// Version 2, once it is in models/greeter/2.
import { defineWorker } from "sheaf/node";

export const sample = (index) => `name ${index}`;

export default defineWorker({ run: (names) => names.map((name) => `Good morning, ${name}.`) });
