// Replays testdata/vectors/*.json (chapter 19 of docs/protocol.md): makes each
// call of the transcripts and compares every value that it names.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { Session } from './ackbits.mjs';
import { aesGcm } from './aesgcm.mjs';
import { Lane } from './lane.mjs';

const vectors = new URL('../../testdata/vectors/', import.meta.url);

/** @param {Uint8Array | null} bytes */
const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');
/** @param {string} digits */
const bytes = (digits) => Uint8Array.from(Buffer.from(digits, 'hex'));
/** @param {number} time */
const orNone = (time) => (time === Infinity ? -1 : time);

/** The application of vectors with "accept" (19.2). @param {number} _ @param {Uint8Array} payload */
function judge(_, payload) {
  if (payload[0] === 0xee) return 'refuse';
  return payload[0] === 0xdd ? 'withhold' : 'accept';
}

/** @param {any} v */
const newSession = (v) => new Session({
  token: BigInt('0x' + v.token),
  wide: v.wide,
  ordered: v.ordered,
  bundle: v.bundle,
  judge: v.accept ? judge : undefined,
  heartbeat: v.heartbeat,
  timeout: v.timeout,
  resend: v.resend,
  lossDelay: v.loss,
  stall: v.stall < 0 ? Infinity : v.stall,
  poll: v.poll,
  backlog: v.backlog,
  maxDatagram: v.max_datagram,
  aead: v.seal ? aesGcm(bytes(v.seal), bytes(v.open)) : undefined,
});

/** Sessions with "outcomes": the others have none to give, where this module always has. @type {WeakSet<Session>} */
const asksOutcomes = new WeakSet();

/** What each step of a session returns (19.3). @type {Record<string, (s: Session, v: any) => object>} */
const sessionSteps = {
  receive(s, v) {
    const { payload, events, ...rest } = s.receive(v.at, bytes(v.datagram));
    const list = events.map((event) => `${event.id}:${hex(event.data)}`).join();
    return { ...rest, payload: hex(payload), events: list };
  },
  send: (s, v) => s.send(v.at, bytes(v.event)),
  sends(s, v) {
    for (let i = 1; i < v.count; i++) assert.equal(s.send(v.at, bytes(v.event)).error, '');
    return s.send(v.at, bytes(v.event));
  },
  append(s, v) {
    const { datagram, ...rest } = s.makeDatagram(v.at, v.type, bytes(v.payload));
    return { ...rest, datagram: hex(datagram) };
  },
  burst(s, v) {
    for (let i = 1; i < v.count; i++) assert.equal(s.makeDatagram(v.at, v.type, bytes(v.payload)).error, '');
    return sessionSteps.append(s, v);
  },
  due: (s, v) => ({ datagram: hex(s.nextDue(v.at)) }),
  outcome(s, v) {
    const outcome = asksOutcomes.has(s) ? s.nextOutcome(v.at) : null;
    return { found: outcome !== null, ...(outcome ?? { seq: 0, type: 0, delivered: false, rtt: 0 }) };
  },
  close(s, v) {
    s.close(v.at);
    return {};
  },
  shutdown(s, v) {
    s.shutdown(v.at, v.patience);
    return {};
  },
};

/** @param {Session} s */
const sessionState = (s) => ({
  ack: s.ack,
  bits: s.history.toString(16).padStart(16, '0'),
  in_flight: s.inFlight,
  room: s.room,
  srtt: s.srtt,
  rttvar: s.rttvar,
  deadline: orNone(s.deadline()),
  ended: s.ended,
});

/** What each step of a lane returns (19.4). @type {Record<string, (l: Lane, v: any) => object>} */
const laneSteps = {
  lane_send: (l, v) => l.send(v.at, bytes(v.event), v.droppable),
  lane_next(l, v) {
    const next = l.next(v.at, v.max);
    return { found: next !== null, id: next?.id ?? 0, event: hex(next?.data ?? null) };
  },
  lane_receive: (l, v) => ({ deliver: l.receive(v.id), answer: l.ack }),
  lane_ack: (l, v) => ({ error: l.acknowledge(v.at, v.ack_in) }),
};

/** @param {Lane} l */
const laneState = (l) => ({
  in_flight: l.inFlight, ack: l.ack, deadline: orNone(l.deadline()), ended: l.ended,
});

const inputs = new Set(
  'do at datagram event count type payload patience droppable max id ack_in'.split(' '),
);

for (const file of readdirSync(vectors).filter((name) => name.endsWith('.json')).sort()) {
  test(file, () => {
    const steps = JSON.parse(readFileSync(new URL(file, vectors), 'utf8'));
    assert.ok(steps.length > 1);
    let about = '';
    /** @type {Session} */ let session;
    /** @type {Lane} */ let lane;
    steps.forEach((/** @type {any} */ v, /** @type {number} */ index) => {
      if (v.do === 'new' || v.do === 'lane') {
        about = v.about;
        if (v.do === 'new') session = newSession(v);
        if (v.outcomes) asksOutcomes.add(session);
        else lane = new Lane({ ...v, slot: v.wake });
        return;
      }
      const got = v.do in laneSteps
        ? { ...laneSteps[v.do](lane, v), ...laneState(lane) }
        : { ...sessionSteps[v.do](session, v), ...sessionState(session) };
      for (const key of Object.keys(v)) assert.ok(key in got || inputs.has(key), key);
      assert.deepEqual({ ...v, ...got }, v, `line ${index + 2}, ${v.do}: ${about}`);
    });
  });
}

test('a clock that goes back stands still, and goes on from there', () => {
  const s = new Session({ token: 0n });
  assert.equal(hex(s.makeDatagram(100e6, 3, bytes('')).datagram).slice(0, 4), '0a03');
  assert.equal(s.nextDue(50e6), null);
  assert.equal(s.deadline(), 100e6); // 50 ms after the reading that counts as 100 ms
  assert.equal(s.nextDue(100e6 - 1), null);
  assert.equal(hex(s.nextDue(100e6)).slice(0, 4), '0a06');
});

test('what is kept is a copy, of a Buffer too', () => {
  const ours = Buffer.from('aabb', 'hex');
  const a = new Session({ token: 0n });
  const lane = new Lane();
  a.send(0, ours);
  lane.send(0, ours, false);
  ours.fill(0);
  assert.equal(hex(lane.next(0, 2)?.data ?? null), 'aabb');
  assert.equal(hex(a.undelivered()[0]), 'aabb');
  const early = Buffer.from(a.nextDue(0) ?? []); // event 0, made event 1: 0 is missing
  early[19] = 1;
  const b = new Session({ token: 0n, ordered: true });
  assert.deepEqual(b.receive(0, early).events, []);
  early.fill(0);
  const [, event] = b.receive(0, bytes('0a0500000000000000000100ffff00000000' + '010000' + '0000')).events;
  assert.equal(hex(event.data), 'aabb');
});

/** Numbers from 0 to n − 1, the same in each run. @param {number} seed */
const randomFrom = (seed) => (/** @type {number} */ n) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * n);
};

for (const { name, errors, ...config } of [
  { name: 'bare', errors: ['', 'short', 'format', 'type', 'token', 'payload'] },
  { name: 'wide', errors: ['', 'short', 'format', 'type', 'token', 'payload', 'window'], wide: true, ordered: true },
  { name: 'sealed', errors: ['', 'forged'], aead: aesGcm(new Uint8Array(16), new Uint8Array(16)) },
]) {
  test(`mangled datagrams change nothing when they are dropped, ${name}`, () => {
    const random = randomFrom(1);
    const counts = new Map();
    const a = new Session({ token: 7n, bundle: true, ...config });
    const b = new Session({ token: 7n, ...config });
    for (let i = 0; i < 3000; i++) {
      const now = i * 1e6;
      if (a.room > 0) a.send(now, new Uint8Array(random(40)));
      const { datagram } = a.makeDatagram(now, 4, new Uint8Array(random(40)));
      const mangled = datagram.slice(0, random(datagram.length) + 1);
      for (let n = random(8); n > 0; n--) mangled[random(mangled.length)] = random(256);
      if (random(2)) mangled.set(datagram.subarray(0, Math.min(12, mangled.length))); // of this session
      const before = sessionState(b);
      const { error } = b.receive(now, mangled);
      if (error) assert.deepEqual({ ...sessionState(b), deadline: before.deadline }, before);
      counts.set(error, (counts.get(error) ?? 0) + 1);
      for (let due; (due = b.nextDue(now)); ) a.receive(now, due);
    }
    assert.equal(b.ended, '');
    for (const error of errors) assert.ok((counts.get(error) ?? 0) > 0, error || 'accepted');
  });
}
