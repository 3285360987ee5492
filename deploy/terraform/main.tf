# The store and the roles: the same as in ../aws/crucible.template.yaml, of which docs/reference/aws-account.md explains each resource.
# network.tf has the network of the machines in each Region.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

provider "aws" {
  region = var.regions[0]
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  bucket    = "arn:${local.partition}:s3:::${var.bucket}"
  ec2       = "arn:${local.partition}:ec2:*:${local.account}"
  tags      = merge(var.tags, { "crucible:setup" = var.prefix })
}

# --- The store ----------------------------------------------------------------------------------

resource "aws_s3_bucket" "store" {
  count  = var.create_bucket ? 1 : 0
  bucket = var.bucket
  tags   = local.tags
}

resource "aws_s3_bucket_public_access_block" "store" {
  count                   = var.create_bucket ? 1 : 0
  bucket                  = aws_s3_bucket.store[0].id
  block_public_acls       = true
  ignore_public_acls      = true
  block_public_policy     = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "store" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.store[0].id

  rule {
    bucket_key_enabled = var.kms_key_arn != null

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "store" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.store[0].id

  # Workers end unfinished uploads after three days; this applies if no workers are left.
  rule {
    id     = "abort-uploads"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  # Objects that `crucible doctor` puts and removes, if it was killed in between. No data of a job expires.
  rule {
    id     = "expire-probes"
    status = "Enabled"

    filter {
      prefix = "probes/"
    }

    expiration {
      days = 1
    }
  }
}

data "aws_iam_policy_document" "tls_only" {
  statement {
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket, "${local.bucket}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "store" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.store[0].id
  policy = data.aws_iam_policy_document.tls_only.json
}

# --- Roles --------------------------------------------------------------------------------------

# AWS's own role, one in each account.
resource "aws_iam_service_linked_role" "spot" {
  count            = var.create_spot_role ? 1 : 0
  aws_service_name = "spot.amazonaws.com"
  tags             = local.tags
}

data "aws_iam_policy_document" "trust_machines" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "trust_account" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.partition}:iam::${local.account}:root"]
    }
  }
}

resource "aws_iam_role" "machine" {
  name                 = "${var.prefix}-machine"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary
  description          = "Machines of Crucible: agent, store, images"
  assume_role_policy   = data.aws_iam_policy_document.trust_machines.json

  # `crucible setup aws` reads here which Region has the store.
  tags = merge(local.tags, { "crucible:region" = join(" ", var.regions) })
}

resource "aws_iam_instance_profile" "machine" {
  name = "${var.prefix}-machine"
  role = aws_iam_role.machine.name
  tags = local.tags
}

# What the agent of Systems Manager needs to take commands: AmazonSSMManagedInstanceCore without the right to read parameters. Channels and
# messages have no resource that a policy could name; the agent uses the rest before its machine is registered.
data "aws_iam_policy_document" "agent" {
  statement {
    actions = [
      "ssm:UpdateInstanceInformation",
      "ssm:ListAssociations",
      "ssm:ListInstanceAssociations",
      "ssmmessages:CreateControlChannel",
      "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel",
      "ssmmessages:OpenDataChannel",
      "ec2messages:AcknowledgeMessage",
      "ec2messages:DeleteMessage",
      "ec2messages:FailMessage",
      "ec2messages:GetEndpoint",
      "ec2messages:GetMessages",
      "ec2messages:SendReply",
    ]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "machine_agent" {
  name   = "agent"
  role   = aws_iam_role.machine.name
  policy = data.aws_iam_policy_document.agent.json
}

# What pulling from Amazon's own registry needs. Images may belong to other accounts, such as those that AWS provides.
data "aws_iam_policy_document" "images" {
  statement {
    actions = [
      "ecr:GetAuthorizationToken",
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchGetImage",
      "ecr:GetDownloadUrlForLayer",
    ]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "machine_images" {
  name   = "images"
  role   = aws_iam_role.machine.name
  policy = data.aws_iam_policy_document.images.json
}

# Each session narrows it to one attempt of one job.
resource "aws_iam_role" "grant" {
  name                 = "${var.prefix}-grant"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary
  description          = "Machines of Crucible, narrowed by each session to one attempt of one job"
  # Twelve hours, the longest possible: a grant of this length lets a machine outlive a long outage of the control plane.
  max_session_duration = 43200
  assume_role_policy   = data.aws_iam_policy_document.trust_account.json
  tags                 = local.tags
}

resource "aws_iam_role" "worker" {
  name                 = "${var.prefix}-worker"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary
  description          = "Workers and clients of Crucible: run jobs, and nothing else"
  assume_role_policy   = data.aws_iam_policy_document.trust_account.json
  tags                 = local.tags
}

# A purchase cannot be undone, so a separate role buys.
resource "aws_iam_role" "buyer" {
  name                 = "${var.prefix}-buyer"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary
  description          = "Buys and holds capacity in advance, for good: for people, and for workers that may buy"
  assume_role_policy   = data.aws_iam_policy_document.trust_account.json
  tags                 = local.tags
}
