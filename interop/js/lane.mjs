// The ordered lane of the ackbits protocol: chapter 12 of docs/protocol.md, a
// protocol of its own beside the session. The caller puts its events and
// acknowledgements into packets of any layout.
import { Clock, MS, copyOf } from './ackbits.mjs';

/**
 * @typedef {object} LaneEvent
 * @property {Uint8Array} data
 * @property {number} at when it was given, then when it was last sent
 * @property {number} turn of its last copy; turns count all copies of the lane; 0 if never sent
 * @property {number} resent turn of its last retransmission, 0 for none
 */

/** One end of the ordered lane (chapter 12): Go-Back-N, in packets of the caller's. */
export class Lane {
  #config;
  #clock;
  /** @type {LaneEvent[]} */
  #events = []; // acked + 1 … last
  #acked = 0;
  #sent = 0;
  #turn = 0;
  #ackedResent = 0; // newest retransmission among the acknowledged
  #stallSince = 0;
  #slotIndex = 0; // the slot of the last retransmission
  #slotUsed = 0;
  #delivered = 0;
  #ended = '';

  /**
   * @param {object} [config] times in nanoseconds
   * @param {number} [config.start] the reading of the clock at which the lane begins
   * @param {number} [config.resend] 250 ms
   * @param {number} [config.slot] 100 ms
   * @param {number} [config.budget] retransmissions in a slot, 32
   * @param {number} [config.soft] 256
   * @param {number} [config.hard] 512
   * @param {number} [config.stall] 15 s
   */
  constructor(config = {}) {
    const {
      start = 0, resend = 250 * MS, slot = 100 * MS, budget = 32, soft = 256, hard = 512, stall = 15000 * MS,
    } = config;
    this.#config = { resend, slot, budget, soft, hard, stall };
    this.#clock = new Clock(start);
  }

  get ended() { return this.#ended; }

  get inFlight() { return this.#events.length; }

  /** The highest id delivered, which answers every packet. */
  get ack() { return this.#delivered; }

  /** The receiver (12.1): whether this event is to be delivered. Then it sends `ack` back. @param {number} id */
  receive(id) {
    if (this.#ended || id !== this.#delivered + 1) return false;
    this.#delivered = id;
    return true;
  }

  /**
   * Queues an event, of which a copy is made (P-12.2.1).
   * @param {number} now @param {Uint8Array} event @param {boolean} droppable
   * @returns {{ error: string, id: number }}
   */
  send(now, event, droppable) {
    now = this.#clock.read(now);
    const { soft, hard } = this.#config;
    const count = this.#events.length;
    const last = this.#acked + count;
    if (this.#ended) return { error: this.#ended, id: 0 };
    if (last === 0xffffffff) return { error: 'lane-overflow', id: 0 };
    if (droppable && count >= Math.min(soft, hard - 1)) return { error: 'lane-full', id: 0 };
    if (count >= hard - 1) return { error: (this.#ended = 'lane-overflow'), id: 0 };
    if (count === 0) this.#stallSince = now; // P-12.2.6
    this.#events.push({ data: copyOf(event), at: now, turn: 0, resent: 0 });
    return { error: '', id: last + 1 };
  }

  /**
   * The next event to put on the wire, or null, also if it has more than `max`
   * bytes. It is called until it returns null.
   * @param {number} now @param {number} max @returns {{ id: number, data: Uint8Array } | null}
   */
  next(now, max) {
    now = this.#clock.read(now);
    if (this.#ended) return null;
    if (this.#events.length > 0 && now >= this.#stallSince + this.#config.stall) {
      this.#ended = 'stalled';
      return null;
    }
    const again = this.#nextRetransmission();
    const retransmits = Math.max(again.at, this.#budgetAt()) <= now;
    const index = retransmits ? again.index : this.#sent - this.#acked;
    const event = this.#events[index]; // undefined if all were sent
    if (!event || event.data.length > max) return null;
    event.at = now;
    event.turn = ++this.#turn;
    if (retransmits) {
      event.resent = event.turn;
      this.#spend();
    } else {
      this.#sent++;
    }
    return { id: this.#acked + 1 + index, data: event.data };
  }

  /** Receives an acknowledgement (P-12.2.5); returns an error or ''. @param {number} now @param {number} ack */
  acknowledge(now, ack) {
    now = this.#clock.read(now);
    if (this.#ended) return this.#ended;
    if (ack > this.#sent) return 'ack';
    if (ack <= this.#acked) return '';
    for (const event of this.#events.splice(0, ack - this.#acked)) {
      this.#ackedResent = Math.max(this.#ackedResent, event.resent);
    }
    this.#acked = ack;
    this.#stallSince = now;
    return '';
  }

  /** The reading of the clock at which next has something to do; Infinity for never (P-12.2.7). */
  deadline() {
    if (this.#ended || this.#events.length === 0) return Infinity;
    const unsent = this.#events[this.#sent - this.#acked];
    const retransmission = Math.max(this.#nextRetransmission().at, this.#budgetAt());
    return this.#clock.readingAt(Math.min(
      this.#stallSince + this.#config.stall, unsent ? unsent.at : Infinity, retransmission,
    ));
  }

  /**
   * Which event is due again first, the lowest id of those that are due
   * already, and when: after the delay, or as soon as an older one was sent
   * again after it (P-12.2.2).
   */
  #nextRetransmission() {
    const next = { index: -1, at: Infinity };
    let resent = this.#ackedResent; // newest retransmission of all older ones
    for (let index = 0; index < this.#sent - this.#acked; index++) {
      const event = this.#events[index];
      const at = resent > event.turn ? event.at : event.at + this.#config.resend;
      if (at <= this.#clock.now) return { index, at };
      if (at < next.at) Object.assign(next, { index, at });
      resent = Math.max(resent, event.resent);
    }
    return next;
  }

  /** From when on a retransmission is in the budget of its slot (P-12.2.4). */
  #budgetAt() {
    return this.#slotUsed < this.#config.budget ? 0 : (this.#slotIndex + 1) * this.#config.slot;
  }

  #spend() {
    const index = Math.floor(this.#clock.now / this.#config.slot);
    this.#slotUsed = index === this.#slotIndex ? this.#slotUsed + 1 : 1;
    this.#slotIndex = index;
  }
}
