"""Ten examples of the Python package ``truffle``. They only read, and use the credentials of the AWS CLI.

    python usage.py            all of them
    python usage.py 3 6        two of them
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta, timezone

from truffle import Answer, AsyncTruffle, CrucibleError, ReservationType, Truffle, errors

tf = Truffle(timeout=30)


def example_1() -> None:
    """Where is a GPU sold, and in which zones?"""
    for found in tf.search("H100", show_price=True):
        price = "?" if found.on_demand_price is None else "%.2f" % found.on_demand_price
        print(f"{found.instance_type} in {found.region}: {found.gpus}x {found.gpu_model}, ${price}/h")
    for zones in tf.az("p5.48xlarge", min_az_count=2):
        # Names of zones mean different places in different accounts; the ids do not.
        print(f"{zones.region}: {', '.join(zones.availability_zone_ids)}")


def example_2() -> None:
    """The cheapest spot machines with an A10G or L4 GPU, and what they save."""
    spots = tf.spot(["g5.*", "g6.*"], max_price=2.0, sort_by_price=True, show_savings=True)
    for spot in spots[:5]:
        interrupted = spot.interruption_frequency or "unknown"
        print(f"{spot.instance_type} in {spot.availability_zone}: ${spot.spot_price:.3f}/h, saves {spot.savings_percent}%")
        print(f"   this week ${spot.lowest_price:.3f} to ${spot.highest_price:.3f}, interrupted: {interrupted}")


def example_3() -> None:
    """Capacity Blocks of the account, for training. They end earlier than their end date says."""
    blocks = tf.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS)
    for block in blocks:
        print(f"{block.capacity_block_id}: {block.instance_count}x {block.instance_type}, {block.state}")
        print(f"   {block.start_date} to {block.end_date}, usable until {block.usable_until}")
        if block.state == "active" and block.usable_until_at is not None:
            left = block.usable_until_at - datetime.now(timezone.utc)
            print(f"   {block.available_capacity} free for {left / timedelta(hours=1):.0f} hours")


def example_4() -> None:
    """On-demand reservations, for inference. They are billed whether used or not."""
    reservations = tf.capacity(reservation_type=ReservationType.ODCR, gpu_only=True)
    for one in reservations:
        print(f"{one.reservation_id}: {one.available_capacity} of {one.total_capacity} {one.instance_type} free")
    print(f"unused ones cost ${sum(one.idle_hourly_cost or 0 for one in reservations):.2f}/h")
    # pandas.DataFrame(reservations) converts the rows to a table.
    for note in reservations.notes:
        print(note)


def example_5() -> None:
    """Capacity Blocks for sale: the cheapest, and the command that buys it."""
    start = datetime.now(timezone.utc) + timedelta(days=1)
    offerings = tf.capacity("p5.48xlarge", offerings=True, count=16, days=7, start_after=start, sort="price")
    if offerings:
        best = offerings[0]
        print(f"{best.instance_count}x {best.instance_type} in {best.availability_zone} from {best.start_date}")
        print(f"${best.upfront_fee:,.0f} at once, ${best.price_per_instance_hour:.2f} per instance and hour")
        print(best.purchase_command)
    for sentence in offerings.not_covered:
        print(f"not covered: {sentence}")


def example_6() -> None:
    """Is the capacity there for 16 machines and a week, and if not, what is missing?"""
    validation = tf.validate("p5.48xlarge", count=16, days=7)
    if validation:
        print("yes: the run can begin")
    elif validation.answer is Answer.CONDITIONS:
        print("yes, if: " + "; ".join(validation.conditions))
    else:
        print("no: " + "; ".join(validation.missing))
    for option in validation.options:
        cost = "unknown" if option.expected_cost is None else f"${option.expected_cost:,.0f}"
        print(f"{option.kind} in {option.availability_zone}: room for {option.available_capacity}, expected cost {cost}")
    print(f"next: {validation.next_command}")


def example_7() -> None:
    """Which kind of capacity fits a use case?"""
    training = tf.advise("training", scheduled=True, days=10, machines=32, interruptible=False)
    service = tf.advise("inference", machines=20, scaling=True)
    for advice in (training, service):
        print(f"{advice.use_case}: {advice.reservation_type}")
        for reason in (*advice.reasons, *advice.corrections):
            print(f"   {reason}")


def example_8() -> None:
    """Quotas: how many more vCPUs the account may run, and how to ask for more."""
    quotas = tf.quotas("p5.48xlarge", request=16 * 192)
    for quota in quotas:
        print(f"{quota.region} {quota.family} {quota.market}: {quota.used_vcpus} of {quota.limit_vcpus} vCPUs used")
    for command in quotas.request_commands:
        print(command)


def example_9() -> None:
    """What goes wrong, by the reaction that fits."""
    try:
        option = tf.validate("p5.48xlarge", count=64, days=30).require()
        print(f"start in {option.availability_zone}")
    except errors.ConditionalError as error:
        print(f"later: {error}")
    except errors.CapacityError as error:
        print(f"elsewhere: {error}")
    except (errors.PermissionError, errors.UnavailableError) as error:
        print(f"unknown: {error}")
    try:
        tf.search("p5.48xlrge")
    except errors.NotFoundError as error:
        print(error.hint)
    found = tf.capacity()
    if not found.is_complete:
        print("no answer from " + ", ".join(one.region for one in found.unanswered))


def example_10() -> None:
    """Wait until a reservation has room for eight machines, and look at blocks for sale meanwhile."""

    async def watch(tries: int, pause_seconds: float) -> None:
        # `fresh`: ask AWS each time, instead of using answers of the last 30 seconds.
        truffle = AsyncTruffle(fresh=True)
        for _ in range(tries):
            owned, offerings = await asyncio.gather(
                truffle.capacity(gpu_only=True, available_only=True, min_capacity=8),
                truffle.capacity("p5.48xlarge", offerings=True, count=8, days=1),
            )
            print(f"reservations with room: {len(owned)}, blocks for sale: {len(offerings)}")
            if owned:
                return print(f"start in {owned[0].availability_zone}")
            await asyncio.sleep(pause_seconds)

    asyncio.run(watch(tries=3, pause_seconds=60))


EXAMPLES = [example_1, example_2, example_3, example_4, example_5, example_6, example_7, example_8, example_9, example_10]

if __name__ == "__main__":
    try:
        for number in [int(text) for text in sys.argv[1:]] or range(1, len(EXAMPLES) + 1):
            print(f"\n{number}. {EXAMPLES[number - 1].__doc__}")
            EXAMPLES[number - 1]()
    except CrucibleError as error:
        sys.exit(str(error))
