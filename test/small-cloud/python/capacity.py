"""Drives the sale of reserved capacity with boto3 and writes a report of the answers."""

import datetime
import json
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

LINUX = "Linux/UNIX"
TAGS = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "intent", "Value": "boto <&>"}]}]


def code_of(call, **words):
    try:
        call(**words)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    return "answered", 200


def state_of(ec2, reservation):
    return ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"][0]["State"]


def reach(ec2, reservation, state):
    """Waits until a reservation is in a state; the states change within a second here."""
    for _ in range(300):
        if state_of(ec2, reservation) == state:
            return state
        time.sleep(0.05)
    return state_of(ec2, reservation)


def offerings(ec2):
    wanted = {"InstanceType": "p5.48xlarge", "InstanceCount": 2, "CapacityDurationHours": 48}
    return ec2.describe_capacity_block_offerings(**wanted)["CapacityBlockOfferings"]


def bought(ec2):
    # The last one begins days from now, so that its id stays for sale.
    offering = max(offerings(ec2), key=lambda each: each["StartDate"])
    buying = {"CapacityBlockOfferingId": offering["CapacityBlockOfferingId"], "InstancePlatform": LINUX}
    dry = code_of(ec2.purchase_capacity_block, **buying, DryRun=True)
    answer = ec2.purchase_capacity_block(**buying, TagSpecifications=TAGS)
    made = answer["CapacityReservation"]
    reservation = made["CapacityReservationId"]
    block = answer["CapacityBlocks"][0]
    listed = ec2.describe_capacity_blocks(CapacityBlockIds=[block["CapacityBlockId"]])["CapacityBlocks"][0]
    return reservation, {
        "dry": dry,
        "first": made["State"],
        "paid": reach(ec2, reservation, "scheduled"),
        "tags": made["Tags"],
        "is_as_offered": [made[key] == offering[key] for key in ("StartDate", "EndDate", "InstanceType")],
        "fee": offering["UpfrontFee"],
        "belongs": listed["CapacityReservationIds"] == [reservation],
        "early": code_of(ec2.describe_capacity_block_status, CapacityBlockIds=[block["CapacityBlockId"]]),
        "cancel": code_of(ec2.cancel_capacity_reservation, CapacityReservationId=reservation),
        "malformed": code_of(ec2.purchase_capacity_block, CapacityBlockOfferingId="cb-x", InstancePlatform=LINUX),
        "unknown": code_of(
            ec2.purchase_capacity_block, CapacityBlockOfferingId="cb-0" + 16 * "f", InstancePlatform=LINUX
        ),
    }


def extended(ec2, reservation):
    wanted = {"CapacityReservationId": reservation, "CapacityBlockExtensionDurationHours": 24}
    [offering] = ec2.describe_capacity_block_extension_offerings(**wanted)["CapacityBlockExtensionOfferings"]
    buying = {
        "CapacityBlockExtensionOfferingId": offering["CapacityBlockExtensionOfferingId"],
        "CapacityReservationId": reservation,
    }
    [answer] = ec2.purchase_capacity_block_extension(**buying)["CapacityBlockExtensions"]
    history = []
    for _ in range(300):
        history = ec2.describe_capacity_block_extension_history(CapacityReservationIds=[reservation])["CapacityBlockExtensions"]
        if history[0]["CapacityBlockExtensionStatus"] != "payment-pending":
            break
        time.sleep(0.05)
    [found] = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"]
    return {
        "first": answer["CapacityBlockExtensionStatus"],
        "then": [each["CapacityBlockExtensionStatus"] for each in history],
        "moved": found["EndDate"] == offering["CapacityBlockExtensionEndDate"],
        "again": code_of(ec2.purchase_capacity_block_extension, **buying),
    }


def on_demand(ec2):
    wanted = {"InstanceType": "g5.4xlarge", "InstancePlatform": LINUX, "AvailabilityZone": "us-east-1a"}
    wanted["InstanceMatchCriteria"] = "targeted"
    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=10)
    future = {"StartDate": start, "CommitmentDuration": 14 * 86400, "DeliveryPreference": "incremental"}
    ahead = ec2.create_capacity_reservation(**wanted, **future, InstanceCount=2, TagSpecifications=TAGS, ClientToken="a")
    ahead = ahead["CapacityReservation"]
    later = reach(ec2, ahead["CapacityReservationId"], "scheduled")
    source = ec2.create_capacity_reservation(**wanted, InstanceCount=3)["CapacityReservation"]["CapacityReservationId"]
    parts = ec2.create_capacity_reservation_by_splitting(
        SourceCapacityReservationId=source, InstanceCount=1, ClientToken="b", TagSpecifications=TAGS
    )
    return {
        "first": [ahead["State"], ahead["CommitmentInfo"]["CommittedInstanceCount"], ahead["CapacityAllocations"]],
        "then": later,
        "cancel": code_of(ec2.cancel_capacity_reservation, CapacityReservationId=ahead["CapacityReservationId"]),
        "short": code_of(
            ec2.create_capacity_reservation, **wanted, **{**future, "CommitmentDuration": 86400}, InstanceCount=2
        ),
        "split": [
            parts["SourceCapacityReservation"]["TotalInstanceCount"],
            parts["DestinationCapacityReservation"]["TotalInstanceCount"],
            parts["InstanceCount"],
        ],
    }


def main():
    ec2 = boto3.client("ec2", config=Config(retries={"total_max_attempts": 1}))
    reservation, told = bought(ec2)
    told = {"bought": told, "extended": extended(ec2, reservation), "on_demand": on_demand(ec2)}
    told["statuses"] = [
        each["TotalCapacity"] for each in ec2.describe_capacity_block_status()["CapacityBlockStatuses"]
    ]
    # The answer is lost once, and the retries of boto3 are the usual ones.
    offering = max(offerings(ec2), key=lambda each: each["StartDate"])
    boto3.client("ec2").purchase_capacity_block(
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"],
        InstancePlatform=LINUX,
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": [{"Key": "lost", "Value": "once"}]}],
    )
    tagged = ec2.describe_capacity_reservations(Filters=[{"Name": "tag:lost", "Values": ["once"]}])
    told["retried"] = len(tagged["CapacityReservations"])
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
