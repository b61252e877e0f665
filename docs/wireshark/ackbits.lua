-- A Wireshark dissector for the ackbits protocol (docs/protocol.md).
--
-- Copy it to the folder that Help > About Wireshark > Folders calls "Personal Lua
-- Plugins", or name it on the command line:
--
--	tshark -X lua_script:ackbits.lua -r capture.pcapng -2 -V
--
-- It recognizes ackbits by the format byte and what must follow it, on any port;
-- Decode As works, too. What needs to know later frames (acknowledged in, delivered
-- in) is shown on the second look: in Wireshark when a frame is selected, in tshark
-- with -2. Datagrams are told apart by token and addresses.

local ackbits = Proto("ackbits", "ackbits: UDP for games")

local NARROW, WIDE, SEALED_NARROW, SEALED_WIDE, HANDSHAKE = 0x0A, 0x0B, 0x0C, 0x0D, 0x0E
local MAX_DATAGRAM = 1200

local formats = {
	[NARROW] = "narrow", [WIDE] = "wide", [SEALED_NARROW] = "narrow, sealed",
	[SEALED_WIDE] = "wide, sealed", [HANDSHAKE] = "handshake",
}
local EVENT, HEARTBEAT, DISCONNECT, BUNDLE = 5, 6, 7, 8
local types = {
	[1] = "Connect", [2] = "Accept", [3] = "Input", [4] = "Snapshot",
	[EVENT] = "Event", [HEARTBEAT] = "Heartbeat", [DISCONNECT] = "Disconnect", [BUNDLE] = "Bundle",
}

local function type_name(t)
	return types[t] or "Type " .. t
end

-- P-13.1.1: the messages of the handshake, and how long each may be.
local kinds = {
	[1] = "Hello", [2] = "Challenge", [3] = "Accept", [4] = "Refuse",
	[5] = "Reset", [6] = "Probe", [7] = "ProbeReply",
}
local sizes = {
	[1] = { 640, 1200 }, [2] = { 99, 99 }, [3] = { 76, 588 }, [4] = { 34, 290 },
	[5] = { 26, 26 }, [6] = { 26, 26 }, [7] = { 26, 26 },
}

-- P-14.1.1: the messages of transfers.
local messages = {
	[1] = "offer", [2] = "accept", [3] = "refuse", [4] = "chunk", [5] = "ask",
	[6] = "answer", [7] = "done", [8] = "stop", [9] = "decline",
}

-- P-2.2: types 1 to 4 and 16 to 255 are the application's.
local function is_application(t)
	return t >= 1 and t <= 4 or t >= 16
end

local f = {
	format = ProtoField.uint8("ackbits.format", "Format", base.HEX, formats),
	sealed = ProtoField.bool("ackbits.sealed", "Sealed"),
	type = ProtoField.uint8("ackbits.type", "Type", base.DEC, types),
	token = ProtoField.uint64("ackbits.token", "Token", base.HEX),
	seq = ProtoField.uint16("ackbits.seq", "Sequence"),
	number = ProtoField.uint64("ackbits.number", "Number", base.DEC, nil, nil, "The sequence without its wrap, counted from the first frame of the capture"),
	ack = ProtoField.uint16("ackbits.ack", "Ack"),
	ack_bits = ProtoField.uint64("ackbits.ack_bits", "Ack bits", base.HEX),
	acked = ProtoField.uint16("ackbits.acked", "Acknowledges sequence"),
	acked_frame = ProtoField.framenum("ackbits.acked_frame", "Acknowledges the datagram in frame", base.NONE, frametype.ACK),
	first_acked = ProtoField.framenum("ackbits.first_acked", "Acknowledges for the first time the datagram in frame", base.NONE, frametype.ACK),
	first_acked_after = ProtoField.relative_time("ackbits.first_acked_after", "Time since that was sent"),
	acked_in = ProtoField.framenum("ackbits.acked_in", "First acknowledged in frame", base.NONE, frametype.ACK),
	acked_after = ProtoField.relative_time("ackbits.acked_after", "Acknowledged after"),
	duplicate_of = ProtoField.framenum("ackbits.duplicate_of", "The same sequence as in frame", base.NONE, frametype.DUP_ACK),
	inner = ProtoField.uint8("ackbits.inner_type", "Inner type", base.DEC, types),
	count = ProtoField.uint8("ackbits.count", "Events"),
	event = ProtoField.bytes("ackbits.event", "Event"),
	event_id = ProtoField.uint16("ackbits.event.id", "Id"),
	event_length = ProtoField.uint16("ackbits.event.length", "Length"),
	event_data = ProtoField.bytes("ackbits.event.data", "Data"),
	event_copy = ProtoField.uint32("ackbits.event.copy", "Copy"),
	event_resent = ProtoField.bool("ackbits.event.resent", "Retransmitted"),
	event_first = ProtoField.framenum("ackbits.event.first", "First sent in frame", base.NONE, frametype.RETRANS_PREV),
	event_delivered = ProtoField.framenum("ackbits.event.delivered_in", "Delivered by the acknowledgement in frame", base.NONE, frametype.ACK),
	payload = ProtoField.bytes("ackbits.payload", "Payload"),
	sealed_payload = ProtoField.bytes("ackbits.sealed_payload", "Sealed payload"),
	chunk = ProtoField.uint8("ackbits.transfer.kind", "Transfer", base.DEC, messages),
	file = ProtoField.uint16("ackbits.transfer.id", "File"),
	size = ProtoField.uint64("ackbits.transfer.size", "Size", base.DEC),
	digest = ProtoField.bytes("ackbits.transfer.digest", "SHA-256"),
	name = ProtoField.string("ackbits.transfer.name", "Name"),
	serial = ProtoField.uint16("ackbits.transfer.serial", "Serial"),
	offset = ProtoField.uint32("ackbits.transfer.offset", "Offset, in units of 512 bytes"),
	arrived = ProtoField.uint32("ackbits.transfer.arrived", "Arrived, in microseconds"),
	result = ProtoField.uint8("ackbits.transfer.result", "Result", base.DEC, { [0] = "all is there and has the digest", [1] = "it has another digest" }),
	reason = ProtoField.string("ackbits.transfer.reason", "Reason"),
	runs = ProtoField.bytes("ackbits.transfer.runs", "Runs of units that are there"),
	data = ProtoField.bytes("ackbits.transfer.data", "Data"),
	kind = ProtoField.uint8("ackbits.handshake.kind", "Message", base.DEC, kinds),
	version = ProtoField.uint8("ackbits.handshake.version", "Version"),
	form = ProtoField.uint8("ackbits.handshake.form", "Form of the session", base.DEC, { [0] = "narrow", [1] = "wide" }),
	client_key = ProtoField.bytes("ackbits.handshake.client_key", "Client's key"),
	server_key = ProtoField.bytes("ackbits.handshake.server_key", "Server's key"),
	cookie = ProtoField.bytes("ackbits.handshake.cookie", "Cookie"),
	salt = ProtoField.bytes("ackbits.handshake.salt", "Salt"),
	code = ProtoField.bytes("ackbits.handshake.code", "Code"),
	box = ProtoField.bytes("ackbits.handshake.box", "Sealed"),
}
ackbits.fields = f

-- Which type transfers have is the application's choice, so it must be said.
ackbits.prefs.transfer_type = Pref.uint("Type of transfers", 0, "The type, 16 to 255, of the datagrams that carry files (chapter 14 of the protocol); 0: none")

local x = {
	short = ProtoExpert.new("ackbits.short", "Shorter than its header", expert.group.MALFORMED, expert.severity.ERROR),
	oversize = ProtoExpert.new("ackbits.oversize", "Longer than 1200 bytes", expert.group.MALFORMED, expert.severity.ERROR),
	cut = ProtoExpert.new("ackbits.cut", "The capture holds only a part of this datagram", expert.group.PROTOCOL, expert.severity.WARN),
	type = ProtoExpert.new("ackbits.bad_type", "Invalid or reserved type", expert.group.MALFORMED, expert.severity.ERROR),
	not_empty = ProtoExpert.new("ackbits.not_empty", "Heartbeat or Disconnect with a payload", expert.group.MALFORMED, expert.severity.ERROR),
	count = ProtoExpert.new("ackbits.no_events", "A list of no events", expert.group.MALFORMED, expert.severity.ERROR),
	past_end = ProtoExpert.new("ackbits.past_end", "An event goes past the end", expert.group.MALFORMED, expert.severity.ERROR),
	left_over = ProtoExpert.new("ackbits.left_over", "Bytes after the last event", expert.group.MALFORMED, expert.severity.ERROR),
	inner = ProtoExpert.new("ackbits.bad_inner_type", "Inner type is not the application's", expert.group.MALFORMED, expert.severity.ERROR),
	never_sent = ProtoExpert.new("ackbits.never_sent", "Acknowledges a sequence that was not sent in this capture", expert.group.SEQUENCE, expert.severity.NOTE),
	kind = ProtoExpert.new("ackbits.bad_kind", "Unknown message of the handshake", expert.group.MALFORMED, expert.severity.ERROR),
	transfer = ProtoExpert.new("ackbits.bad_transfer", "Not a message of transfers", expert.group.MALFORMED, expert.severity.ERROR),
	length = ProtoExpert.new("ackbits.bad_length", "A message of the handshake of another length", expert.group.MALFORMED, expert.severity.ERROR),
	duplicate = ProtoExpert.new("ackbits.duplicate", "This sequence was seen before", expert.group.SEQUENCE, expert.severity.NOTE),
	resent = ProtoExpert.new("ackbits.resent", "Carries a retransmitted event", expert.group.SEQUENCE, expert.severity.CHAT),
}
ackbits.experts = { x.short, x.oversize, x.cut, x.type, x.not_empty, x.count, x.past_end, x.left_over, x.inner, x.kind, x.length, x.transfer, x.never_sent, x.duplicate, x.resent }

-- What was learnt when each frame was looked at for the first time.
local sides  -- by token and direction: what was sent that way
local frames -- by frame: what is shown of it

function ackbits.init()
	sides, frames = {}, {}
end

local function side(token, from, to)
	local key = token .. "|" .. from .. "|" .. to
	local s = sides[key]
	if not s then
		s = { sent = {}, events = {} }
		sides[key] = s
	end
	return s
end

-- nearest returns the number whose low 16 bits are given that is nearest to the
-- newest one (P-11.2.2).
local function nearest(newest, low)
	if not newest then
		return low
	end
	local delta = (low - newest) % 65536
	if delta >= 32768 then
		delta = delta - 65536
	end
	return newest + delta
end

-- note_events counts the copies of events, of a datagram that is no duplicate.
local function note_events(s, datagram, ids, shown)
	for i, id in ipairs(ids) do
		local number = nearest(s.newest_event, id)
		if not s.newest_event or number > s.newest_event then
			s.newest_event = number
		end
		local e = s.events[number]
		if not e then
			e = { first = datagram.frame, copies = 0 }
			s.events[number] = e
		end
		e.copies = e.copies + 1
		datagram.events[#datagram.events + 1] = e
		shown[i] = { event = e, copy = e.copies }
	end
end

-- note_acks resolves what a datagram acknowledges of the other side's (P-4.2): bits
-- is a function that says whether bit n is set.
local function note_acks(other, ack, width, bit_set, shown, frame, at)
	if not other.newest then
		return
	end
	local back = (other.newest - ack) % 65536
	if back >= 32768 then
		shown.void = true
		return
	end
	local top = other.newest - back
	local function name(number)
		local d = other.sent[number]
		if not d then
			return
		end
		local first = not d.acked_in
		if first then
			d.acked_in, d.acked_at = frame, at
			for _, e in ipairs(d.events) do
				e.delivered_in = e.delivered_in or frame
			end
		end
		shown.acks[number % 65536] = { datagram = d, first = first }
	end
	for n = width - 1, 0, -1 do
		if bit_set(n) then
			name(top - 1 - n)
		end
	end
	name(top)
end

-- look learns from a frame, once, and returns what is to be shown.
local function look(h, pinfo)
	local shown = frames[pinfo.number]
	if shown then
		return shown
	end
	shown = { acks = {}, events = {} }
	frames[pinfo.number] = shown
	local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
	local to = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
	local s, other = side(h.token, from, to), side(h.token, to, from)
	local number = nearest(s.newest, h.seq)
	shown.number = number
	local seen = s.sent[number]
	if seen then
		shown.duplicate_of = seen.frame
	elseif not h.bad then
		local d = { frame = pinfo.number, at = pinfo.rel_ts, events = {} }
		s.sent[number] = d
		shown.datagram = d
		if not s.newest or number > s.newest then
			s.newest = number
		end
		note_events(s, d, h.ids, shown.events)
	end
	if not h.bad then
		note_acks(other, h.ack, h.width, h.bit_set, shown, pinfo.number, pinfo.rel_ts)
	end
	return shown
end

-- parse_list checks a list of events (P-5.1.1) and returns its ids, where it ends
-- and what is wrong with it.
local function parse_list(tvb, at, finish, more)
	local list = { at = at, ids = {}, events = {} }
	if at >= finish or tvb(at, 1):uint() == 0 then
		list.wrong = x.count
		list.finish = math.min(at + 1, finish)
		return list
	end
	local count = tvb(at, 1):uint()
	local offset = at + 1
	for _ = 1, count do
		if offset + 4 > finish then
			list.wrong = x.past_end
			break
		end
		local length = tvb(offset + 2, 2):le_uint()
		if offset + 4 + length > finish then
			list.wrong = x.past_end
			break
		end
		list.ids[#list.ids + 1] = tvb(offset, 2):le_uint()
		list.events[#list.events + 1] = { at = offset, length = length }
		offset = offset + 4 + length
	end
	list.finish = offset
	if not list.wrong and offset < finish and not more then
		list.wrong = x.left_over
	end
	return list
end

-- parse reads all that a datagram holds, without showing anything. All of it must
-- have been captured.
local function parse(tvb)
	local h = { ids = {} }
	h.format = tvb(0, 1):uint()
	h.sealed = h.format >= SEALED_NARROW
	h.wide = h.format == WIDE or h.format == SEALED_WIDE
	h.size = h.wide and 22 or 18
	h.width = h.wide and 64 or 32
	h.reported = tvb:reported_len()
	h.captured = tvb:len()
	if h.reported < h.size then
		h.bad = x.short
	elseif h.captured < h.size then
		h.bad = x.cut
	end
	if h.bad then
		return h
	end
	h.type = tvb(1, 1):uint()
	h.token = tostring(tvb(2, 8):bytes())
	h.seq = tvb(10, 2):le_uint()
	h.ack = tvb(12, 2):le_uint()
	local low, high = tvb(14, 4):le_uint(), h.wide and tvb(18, 4):le_uint() or 0
	h.bit_set = function(n)
		if n >= 32 then
			return bit.band(bit.rshift(high, n - 32), 1) == 1
		end
		return bit.band(bit.rshift(low, n), 1) == 1
	end
	if h.reported > MAX_DATAGRAM then
		h.bad = x.oversize
	elseif h.type == 0 or h.type >= 9 and h.type <= 15 then
		h.bad = x.type
	elseif h.captured < h.reported then
		h.cut = true -- what follows the header is not looked at
	elseif h.sealed then
		return h
	elseif h.type == HEARTBEAT or h.type == DISCONNECT then
		if h.reported > h.size then
			h.bad = x.not_empty
		end
	elseif h.type == EVENT then
		h.list = parse_list(tvb, h.size, h.reported, false)
	elseif h.type == BUNDLE then
		if h.reported == h.size then
			h.bad = x.inner
		else
			h.inner = tvb(h.size, 1):uint()
			if is_application(h.inner) then
				h.list = parse_list(tvb, h.size + 1, h.reported, true)
			else
				h.bad = x.inner
			end
		end
	end
	if h.list then
		h.bad = h.list.wrong
		h.ids = h.list.ids
	end
	return h
end

local function span(seconds)
	local whole = math.floor(seconds)
	return NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5))
end

-- show_acks shows what is acknowledged, newest first, each as a link to its frame.
local function show_acks(tree, tvb, h, shown)
	local range = tvb(12, h.size - 12)
	local sub, count = nil, 0
	local function item(seq)
		local a = shown.acks[seq]
		if not a then
			return false
		end
		sub = sub or tree:add(range, ""):set_generated()
		count = count + 1
		sub:add(f.acked, range, seq):set_hidden()
		local link = sub:add(f.acked_frame, range, a.datagram.frame):set_generated()
		link:set_text("Sequence " .. seq .. ", sent in frame: " .. a.datagram.frame)
		if a.first then
			local after = a.datagram.acked_at - a.datagram.at
			link:append_text(string.format(", for the first time, after %.3f ms", after * 1000))
			link:add(f.first_acked, range, a.datagram.frame):set_generated()
			link:add(f.first_acked_after, range, span(after)):set_generated()
		end
		return true
	end
	local known = item(h.ack)
	for n = 0, h.width - 1 do
		if h.bit_set(n) then
			item((h.ack - 1 - n) % 65536)
		end
	end
	if sub then
		sub:set_text("Acknowledges " .. count .. (count == 1 and " datagram" or " datagrams"))
	end
	if shown.void or not known and h.ack ~= 65535 then
		tree:add_proto_expert_info(x.never_sent)
	end
end

local function show_list(tree, tvb, h, shown)
	local list = h.list
	if list.finish > list.at then
		tree:add(f.count, tvb(list.at, 1))
	end
	local resent
	for i, e in ipairs(list.events) do
		local sub = tree:add(f.event, tvb(e.at, 4 + e.length))
		sub:set_text("Event " .. list.ids[i] .. ", " .. e.length .. " bytes")
		sub:add_le(f.event_id, tvb(e.at, 2))
		sub:add_le(f.event_length, tvb(e.at + 2, 2))
		if e.length > 0 then
			sub:add(f.event_data, tvb(e.at + 4, e.length))
		end
		local s = shown.events[i]
		if s then
			sub:add(f.event_copy, s.copy):set_generated()
			sub:add(f.event_resent, s.copy > 1):set_generated()
			if s.copy > 1 then
				sub:append_text(", retransmitted (copy " .. s.copy .. ")")
				sub:add(f.event_first, s.event.first):set_generated()
				resent = true
			end
			if s.event.delivered_in then
				sub:add(f.event_delivered, s.event.delivered_in):set_generated()
			end
		end
	end
	if resent then
		tree:add_proto_expert_info(x.resent)
	end
end

-- Parts of the messages of transfers behind the kind (14.1): what has no length is all
-- of the rest.
local id = { "file", 2 }
local transfers = {
	[1] = { id, { "size", 8 }, { "digest", 32 } },
	[2] = { id, { "runs" } },
	[3] = { id, { "reason" } },
	[4] = { id, { "serial", 2 }, { "offset", 4 }, { "data" } },
	[5] = { id, { "serial", 2 }, { "offset", 4 }, { "data" } },
	[6] = { { "serial", 2 }, { "arrived", 4 } },
	[7] = { id, { "result", 1 } },
	[8] = { id, { "reason" } },
	[9] = { id, { "reason" } },
}

local function show_transfer(tree, tvb)
	local kind = tvb(0, 1):uint()
	local message = transfers[kind]
	if not message then
		tree:add_proto_expert_info(x.transfer)
		return
	end
	local sub = tree:add(f.chunk, tvb(0, 1))
	local at = 1
	for _, part in ipairs(message) do
		local length = part[2] or tvb:len() - at
		if at + length > tvb:len() then
			tree:add_proto_expert_info(x.transfer)
			return
		end
		if length > 0 then
			sub:add_le(f[part[1]], tvb(at, length))
		end
		at = at + length
	end
	if kind == 1 and tvb:len() == 512 then
		local length = tvb(at, 1):uint()
		if length > 0 then
			sub:add(f.name, tvb(at + 1, length))
		end
	elseif kind == 1 or message[#message][2] and at < tvb:len() then
		tree:add_proto_expert_info(x.transfer)
	end
end

local function show_payload(tree, tvb, h, shown)
	local at = h.size
	if h.cut then
		tree:add_proto_expert_info(x.cut)
		return
	end
	if h.sealed then
		if h.reported > at then
			tree:add(f.sealed_payload, tvb(at))
		end
		return
	end
	if h.inner then
		tree:add(f.inner, tvb(at, 1))
	end
	if h.list then
		show_list(tree, tvb, h, shown)
		at = h.list.finish
	elseif h.inner then
		at = at + 1
	end
	if at < h.reported then
		local sub = tree:add(f.payload, tvb(at))
		if (h.inner or h.type) == ackbits.prefs.transfer_type then
			show_transfer(sub, tvb(at):tvb())
		end
	end
end

local function info(h, shown)
	local text = type_name(h.type)
	if h.inner then
		text = text .. " (" .. type_name(h.inner) .. ")"
	end
	text = text .. " seq=" .. h.seq .. " ack=" .. h.ack
	if #h.ids > 0 then
		text = text .. " events=" .. h.ids[1]
		if #h.ids > 1 then
			text = text .. "…" .. h.ids[#h.ids]
		end
		for _, s in ipairs(shown.events) do
			if s.copy > 1 then
				return text .. " [retransmission]"
			end
		end
	end
	if h.sealed then
		text = text .. " [sealed]"
	end
	if shown.duplicate_of then
		text = text .. " [duplicate]"
	end
	return text
end

local function show_header(tree, tvb, h, shown)
	tree:add(f.sealed, tvb(0, 1), h.sealed):set_generated()
	tree:add(f.type, tvb(1, 1))
	tree:add_le(f.token, tvb(2, 8))
	tree:add_le(f.seq, tvb(10, 2))
	tree:add(f.number, tvb(10, 2), UInt64(shown.number % 4294967296, math.floor(shown.number / 4294967296))):set_generated()
	tree:add_le(f.ack, tvb(12, 2))
	tree:add_le(f.ack_bits, tvb(14, h.wide and 8 or 4))
	if shown.duplicate_of then
		tree:add(f.duplicate_of, shown.duplicate_of):set_generated()
		tree:add_proto_expert_info(x.duplicate)
	end
	local d = shown.datagram
	if d and d.acked_in then
		tree:add(f.acked_in, d.acked_in):set_generated()
		tree:add(f.acked_after, span(d.acked_at - d.at)):set_generated()
	end
end

-- Parts of the messages of the handshake behind format and kind (13.1); the last may
-- have no length: it is all of the rest.
local parts = {
	[1] = { { "version", 1 }, { "form", 1 }, { "client_key", 32 }, { "cookie", 32 }, { "box" } },
	[2] = { { "version", 1 }, { "client_key", 32 }, { "server_key", 32 }, { "cookie", 32 } },
	[3] = { { "server_key", 32 }, { "box" } },
	[4] = { { "salt", 16 }, { "box" } },
	[5] = { { "token", 8 }, { "code", 16 } },
	[6] = { { "token", 8 }, { "code", 16 } },
	[7] = { { "token", 8 }, { "code", 16 } },
}

-- handshake_wrong says what is wrong with a message of the handshake, if anything.
local function handshake_wrong(tvb)
	local kind = tvb:len() > 1 and tvb(1, 1):uint()
	local size = sizes[kind]
	if not size then
		return tvb:reported_len() > 1 and x.kind or x.short
	end
	if tvb:reported_len() < size[1] or tvb:reported_len() > size[2] then
		return x.length
	end
	if tvb:len() < tvb:reported_len() then
		return x.cut
	end
end

-- show_handshake shows a message of chapter 13.
local function show_handshake(tvb, pinfo, tree)
	pinfo.cols.info = "Handshake"
	local wrong = handshake_wrong(tvb)
	local kind = tvb:len() > 1 and tvb(1, 1):uint()
	if kind then
		tree:add(f.kind, tvb(1, 1))
	end
	if kinds[kind] then
		pinfo.cols.info = kinds[kind]
		tree:append_text(", " .. kinds[kind])
	end
	if wrong then
		tree:add_proto_expert_info(wrong)
		return tvb:len()
	end
	local at = 2
	for _, part in ipairs(parts[kind]) do
		local length = part[2] or tvb:len() - at
		if length > 0 then
			tree:add_le(f[part[1]], tvb(at, length))
		end
		at = at + length
	end
	if kind == 1 then
		local cookie = tostring(tvb(36, 32):bytes())
		pinfo.cols.info:append(cookie == string.rep("0", 64) and " without a cookie" or " with a cookie")
	end
	return tvb:len()
end

function ackbits.dissector(tvb, pinfo, root)
	if tvb:len() == 0 or not formats[tvb(0, 1):uint()] then
		return 0
	end
	pinfo.cols.protocol = "ackbits"
	pinfo.cols.info = formats[tvb(0, 1):uint()]
	local tree = root:add(ackbits, tvb())
	tree:add(f.format, tvb(0, 1))
	if tvb(0, 1):uint() == HANDSHAKE then
		return show_handshake(tvb, pinfo, tree)
	end
	local h = parse(tvb)
	if h.token then
		local shown = look(h, pinfo)
		pinfo.cols.info = info(h, shown)
		tree:append_text(", " .. info(h, shown))
		show_header(tree, tvb, h, shown)
		show_acks(tree, tvb, h, shown)
		show_payload(tree, tvb, h, shown)
	end
	if h.bad then
		tree:add_proto_expert_info(h.bad)
		pinfo.cols.info:append(h.bad == x.cut and "" or " [malformed]")
	end
	return tvb:len()
end

-- A stranger's datagram is taken for ackbits when nothing in it says otherwise. From
-- then on all of that conversation is, so that malformed ones are shown as such.
local function heuristic(tvb, pinfo, root)
	if tvb:len() < 18 then
		return false
	end
	local format = tvb(0, 1):uint()
	if format == HANDSHAKE then
		-- A conversation begins with a Hello; the others are too short to be sure.
		if tvb(1, 1):uint() > 2 or handshake_wrong(tvb) then
			return false
		end
	elseif format < NARROW or format > SEALED_WIDE or parse(tvb).bad then
		return false
	end
	pinfo.conversation = ackbits
	ackbits.dissector(tvb, pinfo, root)
	return true
end

ackbits:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(ackbits)
