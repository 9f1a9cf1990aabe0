  function generator(text) { // mulberry32, seeded with FNV-1a of the text
    let state = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 0x01000193);
    return function () {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }
