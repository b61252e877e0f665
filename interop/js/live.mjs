// Talks to a Go peer behind a lossy link on 127.0.0.1, which is interop/live:
//
//     go run ./interop/live -sealed node interop/js/live.mjs sealed
//
// live.mjs [sealed | join] [wide] [ordered] [bundle] PORT sends 10,000 events, expects
// as many, each exactly once, and that the peer leaves when it has all of ours.
// With join it is refused by a server first, then admitted, and moves to another port
// half-way. It exits with 0 only if all of that came true within 30 seconds.
import { createSocket } from 'node:dgram';
import { MS, Session, Type } from './ackbits.mjs';
import { aesGcm } from './aesgcm.mjs';
import { Client } from './endpoint.mjs';

const EVENTS = 10_000;
const TICK = 15; // ms from one Input to the next
const LIMIT = 30_000; // ms

const port = Number(process.argv.at(-1));
const options = new Set(process.argv.slice(2, -1));

/** A key of 16 bytes that count up. @param {number} first */
const key = (first) => Uint8Array.from({ length: 16 }, (_, i) => first + i);

const began = process.hrtime.bigint();
const now = () => Number(process.hrtime.bigint() - began);

const form = { wide: options.has('wide'), ordered: options.has('ordered'), bundle: options.has('bundle') };

/** The public half of the server's key. */
const serverKey = Buffer.from('8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f', 'hex');
/** @param {string} hello */
const clientThatSays = (hello) =>
  new Client({ serverKey, hello: Buffer.from(hello), wide: form.wide, start: now(), session: form });

/** The session, or the client that has one once it is admitted. @type {Session | Client} */
let side = options.has('join') ? clientThatSays('nobody') : new Session({
  token: 0x1122334455667788n,
  ...form,
  aead: options.has('sealed') ? aesGcm(key(0x10), key(0x00)) : undefined,
});
const sessionNow = () => (side instanceof Client ? side.session : side);

let socket = createSocket('udp4');
/** @type {NodeJS.Timeout | undefined} */
let timer;

let sent = 0; // events
let inputs = 0;
let snapshot = -1; // counter of the latest one
let snapshots = 0;
let received = 0; // events
let moves = 0;
const seen = new Set();
const outcomes = { delivered: 0, lost: 0 };

/** @param {string} why @returns {never} */
function fail(why) {
  console.error(`live.mjs: ${why}; sent ${sent}, received ${received}, in flight ${sessionNow()?.inFlight}`);
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
  const session = sessionNow();
  while (session && sent < EVENTS && session.room > 0) {
    const { error } = session.send(at, eventOf(sent));
    if (error) fail(`send: ${error}`);
    sent++;
  }
  for (let datagram; (datagram = side.nextDue(at)); ) socket.send(datagram);
  for (let outcome; (outcome = session?.nextOutcome(at)); ) outcomes[outcome.delivered ? 'delivered' : 'lost']++;
  if (side.ended === 'refused') return knockAgain();
  if (side.ended) finish();
  clearTimeout(timer);
  timer = setTimeout(flush, Math.ceil((side.deadline() - now()) / MS));
}

/** Comes with a better hello, after the refusal that it expects. */
function knockAgain() {
  if (!(side instanceof Client) || side.reason !== 'not you') fail('refused for another reason');
  side = clientThatSays('somebody');
  flush();
}

function tick() {
  const session = sessionNow();
  if (!session || session.ended) return;
  if (side instanceof Client && moves === 0 && received > EVENTS / 2) return move();
  const payload = Buffer.alloc(20);
  payload.writeUInt32LE(inputs++);
  const { error, datagram } = session.makeDatagram(now(), Type.INPUT, payload);
  if (error) fail(`makeDatagram: ${error}`);
  socket.send(datagram);
  flush();
}

/** Goes on from another port, as a client does whose address has changed. */
function move() {
  moves++;
  clearTimeout(timer);
  socket.close();
  socket = createSocket('udp4');
  open();
}

/** @param {Buffer} datagram */
function receive(datagram) {
  const got = side.receive(now(), datagram);
  if (got) take(got);
  flush();
}

/** @param {import('./ackbits.mjs').Received} got */
function take(got) {
  if (got.error && got.error !== 'replayed') fail(`receive: ${got.error}`);
  got.events.forEach(check);
  if (got.latest && got.type === Type.SNAPSHOT) {
    const counter = Buffer.from(got.payload).readUInt32LE();
    if (counter <= snapshot) fail(`snapshot ${counter} is the latest after ${snapshot}`);
    snapshot = counter;
    snapshots++;
  }
}

/** @returns {never} */
function finish() {
  const session = sessionNow();
  if (side.ended !== 'peer-left' || !session) fail(`it ended: ${side.ended}`);
  if (received !== EVENTS || sent !== EVENTS || session.inFlight > 0) fail('the peer left too early');
  if (snapshots === 0 || outcomes.delivered === 0) fail('no snapshot came, or no datagram arrived');
  if (side instanceof Client && Buffer.from(side.reply).toString() !== 'welcome') fail('the server said something else');
  console.log(
    `${EVENTS} events each way in ${(now() / 1e9).toFixed(1)} s; ${inputs} inputs, ${snapshots} snapshots; ` +
    `datagrams: ${outcomes.delivered} delivered, ${outcomes.lost} lost; round trip ${(session.srtt / MS).toFixed(1)} ms`,
  );
  process.exit(0);
}

function open() {
  socket.on('error', (error) => fail(error.message));
  socket.on('message', receive);
  socket.connect(port, '127.0.0.1', flush);
}

setTimeout(() => fail('the time is over'), LIMIT);
open();
setInterval(tick, TICK);
