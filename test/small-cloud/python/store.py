"""Drives the small cloud's object store with boto3, which takes its own ways with checksums, parts and conditions."""

import hashlib
import io
import json
import os
import sys
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

MIB = 1024 * 1024


def code_of(call, **words):
    try:
        call(**words)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def main():
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="boto")
    s3.get_waiter("bucket_exists").wait(Bucket="boto")
    large = os.urandom(17 * MIB)
    # A body that is no bytes is sent in pieces, with its checksum behind it.
    s3.put_object(Bucket="boto", Key="a/stream", Body=io.BytesIO(b"streamed"), ChecksumAlgorithm="SHA256")
    s3.put_object(Bucket="boto", Key="a/b c+ü.txt", Body=b"small", Metadata={"who": "boto"})
    parts = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB)
    s3.upload_fileobj(io.BytesIO(large), "boto", "large", Config=parts)
    back = io.BytesIO()
    s3.download_fileobj("boto", "large", back, Config=parts)
    # Else it takes a way of signing that the newer regions have never had.
    signing = boto3.client("s3", config=Config(signature_version="s3v4"))
    url = signing.generate_presigned_url("get_object", Params={"Bucket": "boto", "Key": "a/stream"})
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="boto", PaginationConfig={"PageSize": 1})
    told = {
        "stream": s3.get_object(Bucket="boto", Key="a/stream")["Body"].read().decode(),
        "metadata": s3.head_object(Bucket="boto", Key="a/b c+ü.txt")["Metadata"],
        "range": s3.get_object(Bucket="boto", Key="a/b c+ü.txt", Range="bytes=1-3")["Body"].read().decode(),
        "isSame": hashlib.sha256(back.getvalue()).digest() == hashlib.sha256(large).digest(),
        "keys": [each["Key"] for page in pages for each in page["Contents"]],
        "second": code_of(s3.put_object, Bucket="boto", Key="a/stream", Body=b"x", IfNoneMatch="*"),
        "none": code_of(s3.get_object, Bucket="boto", Key="none"),
        "elsewhere": code_of(boto3.client("s3", region_name="us-west-2").get_bucket_versioning, Bucket="other"),
        "presigned": urllib.request.urlopen(url).read().decode(),
        "deleted": len(s3.delete_objects(Bucket="boto", Delete={"Objects": [{"Key": "large"}, {"Key": "a/stream"}]})["Deleted"]),
        "federated": boto3.client("sts").get_federation_token(Name="boto")["FederatedUser"]["Arn"],
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
