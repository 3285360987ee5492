"""Drives the small cloud with boto3: its parsers, its paginators and its waiters are the judges."""

import base64
import json
import sys
import time

import boto3
from botocore.exceptions import ClientError

PARAMETER = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"


def code_of(call, **words):
    try:
        call(**words)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def launch(ec2, ssm):
    image = ssm.get_parameter(Name=PARAMETER)["Parameter"]["Value"]
    subnets = [s for page in ec2.get_paginator("describe_subnets").paginate() for s in page["Subnets"]]
    template = ec2.create_launch_template(
        LaunchTemplateName="boto",
        LaunchTemplateData={"ImageId": image, "IamInstanceProfile": {"Name": "crucible-machine"}},
    )["LaunchTemplate"]
    fleet = ec2.create_fleet(
        Type="instant",
        ClientToken="boto-1",
        SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "job", "Value": "boto <&>"}]}],
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template["LaunchTemplateId"], "Version": "1"},
                "Overrides": [{"InstanceType": "g5.xlarge", "SubnetId": s["SubnetId"]} for s in subnets],
            }
        ],
    )
    return fleet["Instances"][0]["InstanceIds"][0]


def command_on(ssm, instance):
    waiter = ssm.get_waiter("command_executed")
    command = ssm.send_command(
        InstanceIds=[instance], DocumentName="AWS-RunShellScript", Parameters={"commands": ["echo from boto; exit 0"]}
    )["Command"]["CommandId"]
    waiter.wait(CommandId=command, InstanceId=instance, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    return ssm.get_command_invocation(CommandId=command, InstanceId=instance)


def agent_of(ssm, instance):
    for _ in range(100):
        found = ssm.describe_instance_information()["InstanceInformationList"]
        if any(each["InstanceId"] == instance and each["PingStatus"] == "Online" for each in found):
            return True
        time.sleep(0.1)
    return False


def registry_of(ecr):
    """Who logs in, where, and for how many hours."""
    [given] = ecr.get_authorization_token()["authorizationData"]
    user = base64.b64decode(given["authorizationToken"]).decode().partition(":")[0]
    hours = (given["expiresAt"].timestamp() - time.time()) / 3600
    return [user, given["proxyEndpoint"], round(hours)]


def reservation_of(ec2):
    """Made, found by its paginator, launched into as if it were a Capacity Block, and cancelled."""
    made = ec2.create_capacity_reservation(
        InstanceType="g5.xlarge",
        InstancePlatform="Linux/UNIX",
        InstanceCount=2,
        AvailabilityZone="us-east-1b",
        InstanceMatchCriteria="targeted",
        ClientToken="boto-2",
    )["CapacityReservation"]["CapacityReservationId"]
    pages = ec2.get_paginator("describe_capacity_reservations").paginate(CapacityReservationIds=[made])
    [found] = [each for page in pages for each in page["CapacityReservations"]]
    refused = code_of(
        ec2.run_instances,
        MinCount=1,
        MaxCount=1,
        InstanceType="g5.xlarge",
        ImageId="resolve:ssm:" + PARAMETER,
        InstanceMarketOptions={"MarketType": "capacity-block"},
        CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": made}},
    )
    ec2.cancel_capacity_reservation(CapacityReservationId=made)
    return [found["State"], found["AvailableInstanceCount"], found["InstanceMatchCriteria"], refused]


def main():
    ec2, ssm = boto3.client("ec2"), boto3.client("ssm")
    sts, iam = boto3.client("sts"), boto3.client("iam")
    wait = {"Delay": 1, "MaxAttempts": 60}
    instance = launch(ec2, ssm)
    ec2.get_waiter("instance_running").wait(InstanceIds=[instance], WaiterConfig=wait)
    ec2.get_waiter("instance_status_ok").wait(InstanceIds=[instance], WaiterConfig=wait)
    described = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    told = {
        "tags": {tag["Key"]: tag["Value"] for tag in described["Tags"]},
        "lifecycle": described.get("InstanceLifecycle"),
        "agent": agent_of(ssm, instance),
        "output": command_on(ssm, instance)["StandardOutputContent"],
        "types": sum(len(p["InstanceTypes"]) for p in ec2.get_paginator("describe_instance_types").paginate()),
        "prices": len(ec2.describe_spot_price_history(InstanceTypes=["g5.xlarge"], MaxResults=5)["SpotPriceHistory"]),
        "who": sts.get_caller_identity()["Arn"],
        "role": iam.get_role(RoleName="crucible-machine")["Role"]["AssumeRolePolicyDocument"]["Version"],
        "session": sts.assume_role(RoleArn="arn:aws:iam::111122223333:role/crucible-grant", RoleSessionName="boto")[
            "AssumedRoleUser"
        ]["Arn"],
        "quota": boto3.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")["Quota"]["Value"],
        "registry": registry_of(boto3.client("ecr")),
        "products": len(boto3.client("pricing").get_products(ServiceCode="AmazonEC2", MaxResults=7)["PriceList"]),
        "unknown": code_of(ec2.describe_instances, InstanceIds=["i-00000000000000000"]),
        "stray": code_of(ec2.run_instances, MinCount=1, MaxCount=1, CreditSpecification={"CpuCredits": "standard"}),
        "dry": code_of(ec2.terminate_instances, InstanceIds=[instance], DryRun=True),
        "ssm": code_of(ssm.send_command, InstanceIds=["i-00000000000000000"], DocumentName="AWS-RunShellScript", Parameters={"commands": ["true"]}),
    }
    told["reserved"] = reservation_of(ec2)
    told["spot"] = code_of(ec2.stop_instances, InstanceIds=[instance])
    ec2.terminate_instances(InstanceIds=[instance])
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[instance], WaiterConfig=wait)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
