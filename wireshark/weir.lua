-- Wireshark dissector of Weir's protocol, wire format 2 (docs/protocol.md, hostlib/protocol/wire.py).
--
--   wireshark -X lua_script:wireshark/weir.lua results/run/pcap/pool.node3.pcapng
--
-- or put it into Wireshark's folder of personal Lua plugins. Display filters: weir.op == 1, weir.flags.merged == 1,
-- weir.sequence == 880, weir.key == 25:7e:04:... Checksums and tags are shown, not verified: tags need the
-- tenant's secret.

local PORT, VERSION, HEADER_BYTES, LIST_BYTES = 22341, 2, 80, 512

local OPS = {
  [1] = "GET", [2] = "VALUE", [3] = "NOT_FOUND", [4] = "PUT", [5] = "PUT_ACK", [6] = "REFUSED", [7] = "STAT",
  [8] = "FOUND", [9] = "HELLO", [10] = "LIST", [11] = "KEYS", [12] = "EXPECT",
  [13] = "DELETE", [14] = "DELETED",
  [17] = "RECLAIM",
  [18] = "FILL", [19] = "PUSH", [20] = "MEMBERS",
}
local CARRIES_VALUE = { [2] = true, [4] = true }
local CARRIES_LIST = { [9] = true, [11] = true, [12] = true, [20] = true }
-- Bytes of a value: one size for all of a network.
local SIZES = { [512] = true, [1408] = true, [8192] = true }
-- Who asks without knowing how long the block is sends fragments 0; so does who answers that nothing is there.
local MAY_LACK_LENGTH = {
  [1] = true, [3] = true, [6] = true, [7] = true, [9] = true, [10] = true, [11] = true, [12] = true,
  [20] = true,
}
local REASONS = {
  [1] = "FULL", [2] = "QUOTA", [3] = "LENGTH", [4] = "CONTENT", [5] = "UNREADABLE", [6] = "BUSY", [7] = "NOT_HOME",
  [8] = "DELETED", [9] = "PROOF",
}
local STATES = { [0] = "up", [1] = "joining", [2] = "down" }
local FLAGS = {  -- in the order of their bits
  { 0x0001, "retry" }, { 0x0002, "bypass" }, { 0x0004, "from_pool" }, { 0x0008, "merged" }, { 0x0010, "fill" },
  { 0x0020, "reclaim" }, { 0x0040, "pushed" }, { 0x0080, "subscribe" }, { 0x0100, "held" },
  { 0x0200, "repair" }, { 0x0400, "durable" }, { 0x0800, "created" },
  { 0x1000, "tombstones" },
  { 0x2000, "hint" },
}

local weir = Proto("weir", "Weir KV protocol")
local f = weir.fields
f.version = ProtoField.uint8("weir.version", "Version")
f.op = ProtoField.uint8("weir.op", "Operation", base.DEC, OPS)
f.flags = ProtoField.uint16("weir.flags", "Flags", base.HEX)
for _, flag in ipairs(FLAGS) do
  f["flag_" .. flag[2]] = ProtoField.bool("weir.flags." .. flag[2], flag[2]:upper(), 16, nil, flag[1])
end
f.backlog_ms = ProtoField.uint16("weir.backlog_ms", "Backlog, ms")
f.recompute_ms = ProtoField.uint16("weir.recompute_ms", "Recomputing costs; FOUND: promised to others, ms")
f.sequence = ProtoField.uint32("weir.sequence", "Sequence")
f.generation = ProtoField.uint32("weir.generation", "Generation")
f.reason = ProtoField.uint32("weir.reason", "Refused because", base.DEC, REASONS)
f.depth = ProtoField.uint16("weir.depth", "Depth in the chain")
f.chain_blocks = ProtoField.uint16("weir.chain_blocks", "Blocks of the chain")
f.parent = ProtoField.uint32("weir.parent", "Parent's key, first 32 bits", base.HEX)
f.home_1 = ProtoField.uint8("weir.home_1", "Home 1")
f.home_2 = ProtoField.uint8("weir.home_2", "Home 2")
f.home_3 = ProtoField.uint8("weir.home_3", "Home 3")
f.epoch = ProtoField.uint8("weir.epoch", "Epoch of the members, modulo 256")
f.checksum = ProtoField.uint32("weir.checksum", "Checksum (CRC-32)", base.HEX)
f.tenant = ProtoField.uint16("weir.tenant", "Tenant")
f.fragment = ProtoField.uint16("weir.fragment", "Fragment")
f.fragments = ProtoField.uint16("weir.fragments", "Fragments of the block")
f.value_bytes = ProtoField.uint16("weir.value_bytes", "Meaningful bytes of the value")
f.content = ProtoField.uint64("weir.content", "Content id", base.HEX)
f.key = ProtoField.bytes("weir.key", "Key")
f.tag = ProtoField.bytes("weir.tag", "Tag")
f.value = ProtoField.bytes("weir.value", "Value")
f.padding = ProtoField.bytes("weir.padding", "Padding")
f.members_epoch = ProtoField.uint32("weir.members.epoch", "Epoch")
f.members_replicas = ProtoField.uint8("weir.members.replicas", "Replicas")
f.members_count = ProtoField.uint8("weir.members.count", "Storage nodes")
f.member_number = ProtoField.uint8("weir.member.number", "Number")
f.member_state = ProtoField.uint8("weir.member.state", "State", base.DEC, STATES)
f.member_address = ProtoField.ipv4("weir.member.address", "Address")
f.next_tenant = ProtoField.uint16("weir.keys.next_tenant", "Go on from tenant")
f.next_key = ProtoField.bytes("weir.keys.next_key", "Go on from key")
f.entry_tenant = ProtoField.uint16("weir.keys.tenant", "Tenant")
f.entry_key = ProtoField.bytes("weir.keys.key", "Key")
f.entry_content = ProtoField.uint64("weir.keys.content", "Content id", base.HEX)
f.entry_fragments = ProtoField.uint16("weir.keys.fragments", "Fragments")
f.expect_key = ProtoField.bytes("weir.expect.key", "Key")
f.expect_fragments = ProtoField.uint16("weir.expect.fragments", "Fragments")
f.expect_depth = ProtoField.uint16("weir.expect.depth", "Depth in the chain")
f.expect_chain_blocks = ProtoField.uint16("weir.expect.chain_blocks", "Blocks of the chain")
f.expect_recompute_ms = ProtoField.uint16("weir.expect.recompute_ms", "Computing costs, ms")
f.expect_parent = ProtoField.uint32("weir.expect.parent", "Parent's key, first 32 bits", base.HEX)

local malformed = ProtoExpert.new(
  "weir.malformed", "Hosts drop this message", expert.group.MALFORMED, expert.severity.ERROR)
weir.experts = { malformed }

-- (field, offset, length) of what is not told apart by the operation, in the order of the header.
local HEADER = {
  { "backlog_ms", 4, 2 }, { "recompute_ms", 6, 2 }, { "sequence", 8, 4 }, { "generation", 12, 4 },
  { "depth", 16, 2 }, { "chain_blocks", 18, 2 }, { "parent", 20, 4 }, { "home_1", 24, 1 }, { "home_2", 25, 1 },
  { "home_3", 26, 1 }, { "epoch", 27, 1 }, { "checksum", 28, 4 }, { "tenant", 32, 2 }, { "fragment", 34, 2 },
  { "fragments", 36, 2 }, { "value_bytes", 38, 2 }, { "content", 40, 8 }, { "key", 48, 16 }, { "tag", 64, 16 },
}

local function add_flags(tree, tvb)
  local item = tree:add(f.flags, tvb(2, 2))
  local bits, names = tvb(2, 2):uint(), {}
  for _, flag in ipairs(FLAGS) do
    item:add(f["flag_" .. flag[2]], tvb(2, 2))
    if math.floor(bits / flag[1]) % 2 == 1 then names[#names + 1] = flag[2]:upper() end
  end
  if #names > 0 then item:append_text(" (" .. table.concat(names, ", ") .. ")") end
  return names
end

-- Why hosts would drop the message, as hostlib.protocol.wire.decode says it; nil if they take it.
local function fault(tvb, op)
  if OPS[op] == nil then return "op" end
  local carried = tvb:reported_len() - HEADER_BYTES
  if CARRIES_VALUE[op] then
    if not SIZES[carried] then return "length" end
  elseif carried ~= (CARRIES_LIST[op] and LIST_BYTES or 0) then
    return "length"
  end
  local fragment, fragments = tvb(34, 2):uint(), tvb(36, 2):uint()
  if fragment >= fragments and (fragment > 0 or fragments > 0 or not MAY_LACK_LENGTH[op]) then return "fragment" end
  if tvb(38, 2):uint() > carried then return "value_bytes" end
  return nil
end

local function add_members(tree, value)
  if value:len() < 6 then return end
  tree:add(f.members_epoch, value(0, 4))
  tree:add(f.members_replicas, value(4, 1))
  tree:add(f.members_count, value(5, 1))
  for at = 6, value:len() - 6, 6 do
    local member = tree:add(weir, value(at, 6), "Storage node " .. value(at, 1):uint())
    member:add(f.member_number, value(at, 1))
    member:add(f.member_state, value(at + 1, 1))
    member:add(f.member_address, value(at + 2, 4))
  end
end

-- (field, offset, length) of a block in KEYS and in EXPECT, 28 bytes in either, and where its key is.
local KEYS_ENTRY = {
  { f.entry_tenant, 0, 2 }, { f.entry_key, 2, 16 }, { f.entry_content, 18, 8 }, { f.entry_fragments, 26, 2 },
  key_at = 2,
}
local EXPECT_ENTRY = {
  { f.expect_fragments, 0, 2 }, { f.expect_depth, 2, 2 }, { f.expect_chain_blocks, 4, 2 },
  { f.expect_recompute_ms, 6, 2 }, { f.expect_parent, 8, 4 }, { f.expect_key, 12, 16 }, key_at = 12,
}

local function add_blocks(tree, value, first, fields)
  for at = first, value:len() - 28, 28 do
    local name = value(at + fields.key_at, 4):bytes():tohex(true)
    local entry = tree:add(weir, value(at, 28), "Block " .. name .. "...")
    for _, field in ipairs(fields) do entry:add(field[1], value(at + field[2], field[3])) end
  end
end

local function add_keys(tree, value)
  if value:len() < 18 then return end
  tree:add(f.next_tenant, value(0, 2))
  tree:add(f.next_key, value(2, 16))
  add_blocks(tree, value, 18, KEYS_ENTRY)
end

local function add_value(tree, tvb, op)
  local there = tvb:len() - HEADER_BYTES
  local meaningful = math.min(tvb(38, 2):uint(), there)
  if there <= 0 then return end
  if meaningful > 0 then
    local value = tvb(HEADER_BYTES, meaningful)
    local item = tree:add(f.value, value)
    if OPS[op] == "MEMBERS" then add_members(item, value) end
    if OPS[op] == "KEYS" then add_keys(item, value) end
    if OPS[op] == "EXPECT" then add_blocks(item, value, 0, EXPECT_ENTRY) end
  end
  if there > meaningful then tree:add(f.padding, tvb(HEADER_BYTES + meaningful, there - meaningful)) end
end

function weir.dissector(tvb, pinfo, root)
  if tvb:len() < 1 then return 0 end
  pinfo.cols.protocol = "Weir"
  local tree = root:add(weir, tvb())
  tree:add(f.version, tvb(0, 1))
  local version = tvb(0, 1):uint()
  if version ~= VERSION or tvb:len() < HEADER_BYTES then
    local why = version ~= VERSION and "version " .. version or "short"
    tree:add_proto_expert_info(malformed, "Hosts drop this message: " .. why)
    pinfo.cols.info = "malformed: " .. why
    return tvb:len()
  end
  local op = tvb(1, 1):uint()
  local name = OPS[op] or ("operation " .. op)
  tree:add(f.op, tvb(1, 1))
  local flags = add_flags(tree, tvb)
  for _, field in ipairs(HEADER) do
    if field[1] == "generation" and name == "REFUSED" then
      tree:add(f.reason, tvb(field[2], field[3]))
    else
      tree:add(f[field[1]], tvb(field[2], field[3]))
    end
  end
  if CARRIES_VALUE[op] or CARRIES_LIST[op] then add_value(tree, tvb, op) end

  local about = string.format(
    "%s %s [%d/%d] sequence %d", name, tvb(48, 4):bytes():tohex(true), tvb(34, 2):uint(), tvb(36, 2):uint(),
    tvb(8, 4):uint())
  if name == "REFUSED" then about = about .. " " .. (REASONS[tvb(12, 4):uint()] or "") end
  if #flags > 0 then about = about .. " " .. table.concat(flags, ",") end
  local why = fault(tvb, op)
  if why ~= nil then
    tree:add_proto_expert_info(malformed, "Hosts drop this message: " .. why)
    about = "malformed (" .. why .. "): " .. about
  end
  tree:append_text(", " .. name)
  pinfo.cols.info = about
  return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, weir)
