// Replays transfer/testdata/messages.json.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readMessage } from './chunks.mjs';

/** @param {Uint8Array} [bytes] */
const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');

for (const v of JSON.parse(readFileSync(new URL('../../transfer/testdata/messages.json', import.meta.url), 'utf8'))) {
  test(v.about, () => {
    const m = readMessage(Uint8Array.from(Buffer.from(v.payload, 'hex')));
    assert.deepEqual({
      about: v.about,
      payload: v.payload,
      error: m ? '' : 'message',
      kind: m?.kind ?? 0,
      id: m?.id ?? 0,
      name: hex(m?.name),
      size: String(m?.size ?? ''),
      digest: hex(m?.digest),
      serial: m?.serial ?? 0,
      offset: String(m?.offset ?? ''),
      data: hex(m?.data),
      arrived: String(m?.arrived ?? ''),
      result: m?.result ?? 0,
      runs: m?.runs?.map(([from, end]) => `${from}-${end}`).join(' ') ?? '',
      reason: hex(m?.reason),
    }, v);
  });
}
