// Version 1. With `npm start` running, copy next/ to models/greeter/2: a moment later version 2 answers.
import { defineWorker } from "sheaf/node";

export const sample = (index) => `name ${index}`;

export default defineWorker({ run: (names) => names.map((name) => `Hello, ${name}!`) });
