// The path from the root to a tip, by position; loaded in blocks.

import { get } from "./api.js";

const BLOCK = 500;

export class Line {
  length = 0;
  items = []; // by position; with holes
  #positions = new Map(); // id → position

  constructor(thread, tip = null) {
    this.thread = thread;
    this.tip = tip;
  }

  positionOf(id) {
    return this.#positions.get(id) ?? -1;
  }

  // The item at a position, loaded if need be.
  async at(position, signal) {
    if (!this.items[position]) await this.#load(blockOf(position), signal);
    return this.items[position];
  }

  // The position of a checkpoint of which the step is known; -1 if it is not on the line.
  // Steps are counted from 1, and where a prune removed some they still grow along the
  // line: then the block that has it is found by halving.
  async find(id, step, signal) {
    await this.#load(blockOf(step - 1), signal);
    let [low, high] = [0, this.length - 1];
    while (low <= high && this.positionOf(id) < 0) {
      const middle = Math.floor((low + high) / 2);
      const found = await this.at(middle, signal);
      if (found === undefined) break;
      if (found.step < step) low = middle + 1;
      else high = middle - 1;
    }
    return this.positionOf(id);
  }

  async #load(first, signal) {
    const params = { thread: this.thread, tip: this.tip, first, limit: BLOCK };
    const block = await get("line", params, { signal });
    this.length = block.length;
    block.items.forEach((item, offset) => {
      this.items[first + offset] = item;
      this.#positions.set(item.id, first + offset);
    });
  }
}

function blockOf(position) {
  return Math.max(0, Math.floor(position / BLOCK) * BLOCK);
}
