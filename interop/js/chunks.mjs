// The messages of a transfer (14.1 of docs/protocol.md), read and checked: what a
// second implementation of chapter 14 begins with.

export const UNIT = 512; // bytes
const OFFER_SIZE = 512; // of an offer, and the most of an accept
const MAX_UNITS = 2 ** 32 - 1; // of a file (P-14.1.2)
const MAX_REASON = 255;

export const Kind = Object.freeze({
  OFFER: 1, ACCEPT: 2, REFUSE: 3, CHUNK: 4, ASK: 5, ANSWER: 6, DONE: 7, STOP: 8, DECLINE: 9,
});

/** Units that are there: the first, and the one behind the last. @typedef {[number, number]} Run */

/**
 * @typedef {object} Message what its kind has of these
 * @property {number} kind
 * @property {number} [id]
 * @property {bigint} [size] bytes
 * @property {Uint8Array} [digest]
 * @property {Uint8Array} [name]
 * @property {Run[]} [runs]
 * @property {Uint8Array} [reason]
 * @property {number} [serial]
 * @property {number} [offset] units
 * @property {Uint8Array} [data]
 * @property {number} [arrived] microseconds
 * @property {number} [result]
 */

/** A message; null if it is none (P-14.1.1). @param {Uint8Array} bytes @returns {Message | null} */
export function readMessage(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kind = bytes[0];
  if (kind === Kind.ANSWER) {
    if (bytes.length !== 7) return null;
    return { kind, serial: view.getUint16(1, true), arrived: view.getUint32(3, true) };
  }
  if (bytes.length < 3) return null;
  const id = view.getUint16(1, true);
  switch (kind) {
    case Kind.OFFER:
      return readOffer(id, view, bytes);
    case Kind.ACCEPT: {
      const runs = bytes.length <= OFFER_SIZE ? readRuns(bytes.subarray(3)) : null;
      return runs && { kind, id, runs };
    }
    case Kind.CHUNK:
    case Kind.ASK: {
      const data = bytes.subarray(9);
      if (data.length === 0 || data.length > 2 * UNIT) return null;
      return { kind, id, serial: view.getUint16(3, true), offset: view.getUint32(5, true), data };
    }
    case Kind.DONE:
      return bytes.length === 4 && bytes[3] <= 1 ? { kind, id, result: bytes[3] } : null;
    case Kind.REFUSE:
    case Kind.STOP:
    case Kind.DECLINE:
      return bytes.length <= 3 + MAX_REASON ? { kind, id, reason: bytes.subarray(3) } : null;
    default:
      return null;
  }
}

/** @param {number} id @param {DataView} view @param {Uint8Array} bytes @returns {Message | null} */
function readOffer(id, view, bytes) {
  if (bytes.length !== OFFER_SIZE) return null;
  const size = view.getBigUint64(3, true);
  const end = 44 + bytes[43]; // of the name
  if (size > BigInt(UNIT * MAX_UNITS) || bytes.subarray(end).some((byte) => byte !== 0)) return null;
  return { kind: Kind.OFFER, id, size, digest: bytes.subarray(11, 43), name: bytes.subarray(44, end) };
}

/** Pairs of units that are missing and that are there (P-14.1.3). @param {Uint8Array} bytes @returns {Run[] | null} */
function readRuns(bytes) {
  const numbers = readNumbers(bytes);
  if (!numbers || numbers.length % 2 !== 0) return null;
  /** @type {Run[]} */
  const runs = [];
  let at = 0;
  for (let i = 0; i < numbers.length; i += 2) {
    const [missing, there] = numbers.slice(i, i + 2);
    if (there === 0 || (missing === 0 && i > 0)) return null;
    runs.push([at + missing, at + missing + there]);
    at += missing + there;
  }
  return at <= MAX_UNITS ? runs : null;
}

/** LEB128 numbers, each in its shortest form. @param {Uint8Array} bytes */
function readNumbers(bytes) {
  const numbers = [];
  let number = 0;
  let scale = 1;
  for (const byte of bytes) {
    number += (byte & 0x7f) * scale;
    scale *= 128;
    if (number > MAX_UNITS || scale > 128 ** 5) return null;
    if (byte >= 0x80) continue;
    if (byte === 0 && scale > 128) return null; // not the shortest
    numbers.push(number);
    [number, scale] = [0, 1];
  }
  return scale === 1 ? numbers : null;
}
