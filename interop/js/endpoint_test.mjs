// Replays endpoint/testdata/handshake.json as the client, and tries what it must ignore.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MS } from './ackbits.mjs';
import { Client } from './endpoint.mjs';

/** @param {Uint8Array | null | undefined} bytes */
const hex = (bytes) => (bytes ? Buffer.from(bytes).toString('hex') : '');
/** @param {string} digits */
const bytes = (digits) => Uint8Array.from(Buffer.from(digits, 'hex'));

const handshakes = JSON.parse(readFileSync(new URL('../../endpoint/testdata/handshake.json', import.meta.url), 'utf8'));
for (const v of handshakes) {
  test(v.name, () => {
    const client = new Client({ privateKey: bytes(v.client_private), hello: bytes(v.hello), wide: v.wide });
    assert.equal(hex(client.nextDue(0)), v.message_hello_bare);
    assert.equal(client.nextDue(250 * MS - 1), null);
    assert.equal(client.deadline(), 250 * MS);
    client.receive(250 * MS - 1, bytes(v.message_challenge));
    assert.equal(hex(client.nextDue(250 * MS - 1)), v.message_hello);
    if (v.message_refuse) {
      client.receive(300 * MS, bytes(v.message_refuse));
      assert.equal(client.ended, 'refused');
      assert.equal(client.reason, v.reason);
      return;
    }
    client.receive(300 * MS, bytes(v.message_accept));
    assert.ok(client.session);
    assert.equal(hex(client.reply), v.reply ?? '');
    const { datagram } = client.session.makeDatagram(300 * MS, 3, Buffer.from('vector'));
    assert.equal(hex(datagram), v.datagram_client_to_server);
    const got = client.receive(300 * MS, bytes(v.datagram_server_to_client));
    assert.equal(String(got?.payload), 'vector');
    client.receive(300 * MS, bytes(v.message_probe));
    assert.equal(hex(client.nextDue(300 * MS)), v.message_probe_reply);
    client.receive(300 * MS, bytes(v.message_reset));
    assert.equal(client.ended, 'reset');
  });
}

const [v] = handshakes;
/** A client that knows the server's key, and has shown the vector's cookie. */
function clientOfVector({ pinned = true } = {}) {
  const serverKey = pinned ? bytes(v.message_challenge).subarray(35, 67) : undefined;
  const client = new Client({ privateKey: bytes(v.client_private), hello: bytes(v.hello), serverKey });
  client.nextDue(0);
  client.receive(0, bytes(v.message_challenge));
  assert.equal(hex(client.nextDue(0)), v.message_hello);
  return client;
}

/** The vector's Challenge with other bytes from `at` on. @param {number} at @param {number[]} others */
function challengeWith(at, ...others) {
  const challenge = bytes(v.message_challenge);
  challenge.set(others, at);
  return challenge;
}

test('every flipped bit and every cut is as good as a loss', () => {
  const refuse = bytes(handshakes.find((/** @type {any} */ other) => other.message_refuse).message_refuse);
  const client = clientOfVector();
  for (const message of [bytes(v.message_accept), refuse]) {
    for (let bit = 0; bit < message.length * 8; bit++) {
      const changed = message.slice();
      changed[bit >> 3] ^= 1 << (bit & 7);
      client.receive(bit * 1e6, changed);
      client.receive(bit * 1e6, message.subarray(0, bit >> 3));
      assert.ok(!client.session && !client.ended, `bit ${bit}`);
    }
  }
  client.receive(4000 * MS, bytes(v.message_accept));
  assert.ok(client.session);
  for (const message of [bytes(v.message_probe), bytes(v.message_reset)]) {
    for (let bit = 0; bit < message.length * 8; bit++) {
      const changed = message.slice();
      changed[bit >> 3] ^= 1 << (bit & 7);
      if (bit < 80 || message[1] === 5) client.receive(4000 * MS, changed);
      assert.ok(!client.ended && client.nextDue(4000 * MS) === null, `bit ${bit}`);
    }
  }
});

test('who does not hear from the right server is told why, when time is over', () => {
  for (const { challenge, why } of [
    { challenge: challengeWith(2, 9), why: 'version' },
    { challenge: challengeWith(2, 9).subarray(0, 35), why: 'version' },
    { challenge: challengeWith(35, 9), why: 'server-key' },
    { challenge: challengeWith(3, 9), why: 'timeout' }, // does not echo the client's key
  ]) {
    const serverKey = bytes(v.message_challenge).subarray(35, 67);
    const client = new Client({ privateKey: bytes(v.client_private), serverKey });
    let hellos = 0;
    for (let now = 0; (now = client.deadline()) < Infinity;) {
      for (let hello; (hello = client.nextDue(now)); hellos++) assert.equal(hex(hello), v.message_hello_bare);
      client.receive(now, challenge);
      assert.equal(client.ended, now < 5000 * MS ? '' : why);
      if (now === 0 && why === 'server-key') client.receive(now, challengeWith(2, 9)); // counts for less
    }
    assert.equal(hellos, 20);
  }
});

test('a point of low order is dropped, and so is an Accept before any Challenge', () => {
  const client = new Client({ privateKey: bytes(v.client_private), hello: bytes(v.hello) });
  client.nextDue(0);
  client.receive(0, bytes(v.message_accept));
  client.receive(0, challengeWith(35, ...Array(32).fill(0)));
  assert.equal(client.nextDue(0), null);
  client.receive(0, bytes(v.message_challenge));
  const accept = bytes(v.message_accept);
  accept.fill(0, 2, 34);
  client.receive(0, accept);
  assert.ok(!client.session);
});

test('forged cookies keep nobody out: each is shown in turn, within a bound', () => {
  for (const pinned of [true, false]) {
    const client = clientOfVector({ pinned });
    let hellos = 0;
    let ours = 1;
    for (let now = 0; now < 4000 * MS; now += MS) {
      if (now % (100 * MS) === 0) client.receive(now, bytes(v.message_challenge)); // again and again
      if (now % (5 * MS) === 0) client.receive(now, challengeWith(67, now / MS & 0xff, now / MS >> 8));
      for (let hello; (hello = client.nextDue(now)); hellos++) ours += hex(hello) === v.message_hello ? 1 : 0;
    }
    assert.ok(hellos > 500 && hellos < 32 + 4 * 128 + 16, `${hellos} Hellos`);
    assert.ok(ours > 5, `${ours} with the server's cookie`);
    client.receive(4000 * MS, bytes(v.message_accept));
    assert.ok(client.session);
  }
});

test('cookies have their turns, and the one that was shown the longest ago gives way', () => {
  const client = clientOfVector();
  /** @param {number} now */
  const shown = (now) => { // which cookies, by their first byte
    const all = [];
    for (let hello; (hello = client.nextDue(now)); ) all.push(hello[36]);
    return all;
  };
  const first = bytes(v.message_challenge)[67];
  client.receive(0, challengeWith(67, 1));
  client.receive(0, challengeWith(67, 2));
  assert.deepEqual(shown(0), [1, 2]);
  assert.deepEqual(shown(250 * MS), [first]);
  assert.deepEqual(shown(500 * MS - 1), []);
  client.receive(500 * MS - 1, challengeWith(67, first));
  client.receive(500 * MS - 1, challengeWith(67, 1));
  assert.deepEqual(shown(500 * MS - 1), [1]); // the other within 250 ms
  assert.deepEqual(shown(1000 * MS), [2]); // the longest ago
  for (let n = 101; n < 131; n++) client.receive(1000 * MS, challengeWith(67, n)); // 33 in all
  client.receive(1000 * MS, challengeWith(67, 110)); // is to be shown already
  assert.deepEqual(shown(1000 * MS), Array.from({ length: 30 }, (_, i) => 101 + i));
  assert.deepEqual(shown(1250 * MS), [1]); // the vector's has given way
});

test('Accepts that do not open are looked at within a bound', () => {
  const client = clientOfVector();
  const junk = bytes(v.message_accept);
  junk[40] ^= 1;
  for (let i = 0; i < 250; i++) client.receive(0, junk);
  client.receive(0, bytes(v.message_accept));
  assert.ok(!client.session);
  client.receive(1 * MS, bytes(v.message_accept));
  assert.ok(client.session);
});
