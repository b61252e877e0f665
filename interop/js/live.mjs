// Talks to a Go peer behind a lossy link on 127.0.0.1, which is interop/live:
//
//     go run ./interop/live -sealed node interop/js/live.mjs sealed
//
// live.mjs [sealed] [wide] [ordered] [bundle] PORT sends 10,000 events, expects
// as many, each exactly once, and that the peer leaves when it has all of ours.
// It exits with 0 only if all of that came true within 30 seconds.
import { createSocket } from 'node:dgram';
import { MS, Session, Type } from './ackbits.mjs';
import { aesGcm } from './aesgcm.mjs';

const EVENTS = 10_000;
const TICK = 15; // ms from one Input to the next
const LIMIT = 30_000; // ms

const port = Number(process.argv.at(-1));
const options = new Set(process.argv.slice(2, -1));

/** A key of 16 bytes that count up. @param {number} first */
const key = (first) => Uint8Array.from({ length: 16 }, (_, i) => first + i);

const began = process.hrtime.bigint();
const now = () => Number(process.hrtime.bigint() - began);

const session = new Session({
  token: 0x1122334455667788n,
  wide: options.has('wide'),
  ordered: options.has('ordered'),
  bundle: options.has('bundle'),
  aead: options.has('sealed') ? aesGcm(key(0x10), key(0x00)) : undefined,
});
const socket = createSocket('udp4');
/** @type {NodeJS.Timeout | undefined} */
let timer;

let sent = 0; // events
let inputs = 0;
let snapshot = -1; // counter of the latest one
let snapshots = 0;
let received = 0; // events
const seen = new Set();
const outcomes = { delivered: 0, lost: 0 };

/** @param {string} why @returns {never} */
function fail(why) {
  console.error(`live.mjs: ${why}; sent ${sent}, received ${received}, in flight ${session.inFlight}`);
  process.exit(1);
}

/** @param {number} i */
function eventOf(i) {
  const event = Buffer.alloc(4 + (i % 64), i % 256);
  event.writeUInt32LE(i);
  return event;
}

/** @param {import('./ackbits.mjs').Event} event */
function check({ id, data }) {
  const i = Buffer.from(data).readUInt32LE();
  if (i >= EVENTS || i !== id || !eventOf(i).equals(data)) fail(`event ${id} has other bytes`);
  if (seen.has(i)) fail(`event ${i} came twice`);
  if (options.has('ordered') && i !== received) fail(`event ${i} came when ${received} was next`);
  seen.add(i);
  received++;
}

/** Sends what is due, fetches outcomes, and sets the timer. */
function flush() {
  const at = now(); // one reading for all that is due (P-6.1.3)
  while (sent < EVENTS && session.room > 0) {
    const { error } = session.send(at, eventOf(sent));
    if (error) fail(`send: ${error}`);
    sent++;
  }
  for (let datagram; (datagram = session.nextDue(at)); ) socket.send(datagram);
  for (let outcome; (outcome = session.nextOutcome(at)); ) outcomes[outcome.delivered ? 'delivered' : 'lost']++;
  if (session.ended) finish();
  clearTimeout(timer);
  timer = setTimeout(flush, Math.ceil((session.deadline() - now()) / MS));
}

function tick() {
  const payload = Buffer.alloc(20);
  payload.writeUInt32LE(inputs++);
  const { error, datagram } = session.makeDatagram(now(), Type.INPUT, payload);
  if (error) fail(`makeDatagram: ${error}`);
  socket.send(datagram);
  flush();
}

/** @param {Buffer} datagram */
function receive(datagram) {
  const got = session.receive(now(), datagram);
  if (got.error && got.error !== 'replayed') fail(`receive: ${got.error}`);
  got.events.forEach(check);
  if (got.latest && got.type === Type.SNAPSHOT) {
    const counter = Buffer.from(got.payload).readUInt32LE();
    if (counter <= snapshot) fail(`snapshot ${counter} is the latest after ${snapshot}`);
    snapshot = counter;
    snapshots++;
  }
  flush();
}

/** @returns {never} */
function finish() {
  if (session.ended !== 'peer-left') fail(`the session ended: ${session.ended}`);
  if (received !== EVENTS || sent !== EVENTS || session.inFlight > 0) fail('the peer left too early');
  if (snapshots === 0 || outcomes.delivered === 0) fail('no snapshot came, or no datagram arrived');
  console.log(
    `${EVENTS} events each way in ${(now() / 1e9).toFixed(1)} s; ${inputs} inputs, ${snapshots} snapshots; ` +
    `datagrams: ${outcomes.delivered} delivered, ${outcomes.lost} lost; round trip ${(session.srtt / MS).toFixed(1)} ms`,
  );
  process.exit(0);
}

setTimeout(() => fail('the time is over'), LIMIT);
socket.on('error', (error) => fail(error.message));
socket.on('message', receive);
socket.connect(port, '127.0.0.1', () => setInterval(tick, TICK));
