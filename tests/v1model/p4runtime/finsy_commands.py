"""finsy, run by an interpreter that has it: python finsy_commands.py ADDRESS P4INFO CONFIG. Prints what it
reads from a switch that runs control.p4."""

import asyncio
import sys
from pathlib import Path

import finsy as fy


def entry() -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "index",
        match=fy.P4TableMatch({"headers.flow.key": 5}),
        action=fy.P4TableAction("set_slot", base=3, generation=2),
    )


async def main(address: str, p4info: str, config: str) -> None:
    options = fy.SwitchOptions(p4info=Path(p4info), p4blob=Path(config), device_id=0)
    async with fy.Switch("switch", address, options) as switch:
        await switch.write([+entry()])
        async for found in switch.read(fy.P4TableEntry("index")):
            print("entry", [int(value) for value in found.match.values()], dict(found.action.args))
        data = fy.P4CounterData(packet_count=7, byte_count=70)
        await switch.write([~fy.P4CounterEntry("kinds", index=2, data=data)])
        async for counter in switch.read(fy.P4CounterEntry("kinds", index=2)):
            print("counter", counter.packet_count, counter.byte_count)
        await switch.write([+fy.P4MulticastGroupEntry(3, replicas=[1, 2])])
        async for group in switch.read(fy.P4MulticastGroupEntry(3)):
            print("group", len(group.replicas))
        await switch.write([~fy.P4RegisterEntry("cells", index=4, data=77)])
        async for cell in switch.read(fy.P4RegisterEntry("cells", index=4)):
            print("register", cell.data)
        try:
            await switch.write([+entry()])
        except fy.P4ClientError as error:
            print("refused", error.details[0].canonical_code.name)
        await switch.write([-entry()])
        async for found in switch.read(fy.P4TableEntry("index")):
            print("left", found)


asyncio.run(main(*sys.argv[1:]))
