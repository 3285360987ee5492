# What workers and the buyer may do, and what machines get narrowed grants of.

data "aws_iam_policy_document" "machines" {
  # Lists and prices have no resource that a policy could name. The image, the subnet and the reservation of a launch may belong to another
  # account.
  statement {
    sid = "Machines"
    actions = [
      "ec2:DescribeInstances",
      "ec2:DescribeInstanceTypes",
      "ec2:DescribeInstanceTypeOfferings",
      "ec2:DescribeImages",
      "ec2:DescribeSubnets",
      "ec2:DescribeSecurityGroups",
      "ec2:DescribeVolumes",
      "ec2:CreateFleet",
      "ec2:RunInstances",
      "ec2:DescribeSpotPriceHistory",
      "ec2:DescribeRouteTables",
      "ec2:DescribeVpcEndpoints",
      "ec2:DescribeCapacityReservations",
      "ec2:DescribeFleets",
      "ec2:DescribeLaunchTemplates",
      "ec2:DescribeSpotInstanceRequests",
      "ec2:GetEbsDefaultKmsKeyId",
      "ssm:DescribeInstanceInformation",
      "ssm:ListCommandInvocations",
      "ssm:GetCommandInvocation",
      "servicequotas:ListRequestedServiceQuotaChangeHistory",
    ]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }
  }

  statement {
    sid       = "Quotas"
    actions   = ["servicequotas:GetServiceQuota"]
    resources = ["arn:${local.partition}:servicequotas:*:${local.account}:ec2/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }
  }

  statement {
    sid       = "TaggedTemplates"
    actions   = ["ec2:CreateLaunchTemplate"]
    resources = ["${local.ec2}:launch-template/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringLike"
      variable = "aws:RequestTag/crucible:deployment"
      values   = [var.deployment]
    }
  }

  statement {
    sid       = "TagsAtLaunch"
    actions   = ["ec2:CreateTags"]
    resources = ["${local.ec2}:*/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringEquals"
      variable = "ec2:CreateAction"
      values   = ["CreateFleet", "RunInstances", "CreateLaunchTemplate"]
    }
  }

  statement {
    sid = "OwnMachines"
    actions = [
      "ec2:TerminateInstances",
      "ec2:DeleteVolume",
      "ec2:DeleteLaunchTemplate",
      "ec2:CancelSpotInstanceRequests",
      "ec2:GetConsoleOutput",
    ]
    resources = [
      "${local.ec2}:instance/*",
      "${local.ec2}:volume/*",
      "${local.ec2}:launch-template/*",
      "${local.ec2}:spot-instances-request/*",
    ]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringLike"
      variable = "aws:ResourceTag/crucible:deployment"
      values   = [var.deployment]
    }
  }

  statement {
    sid       = "OwnCommands"
    actions   = ["ssm:SendCommand"]
    resources = ["${local.ec2}:instance/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringLike"
      variable = "ssm:resourceTag/crucible:deployment"
      values   = [var.deployment]
    }
  }

  statement {
    sid       = "ShellDocument"
    actions   = ["ssm:SendCommand"]
    resources = ["arn:${local.partition}:ssm:*::document/AWS-RunShellScript"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }
  }

  statement {
    sid       = "PublicParameters"
    actions   = ["ssm:GetParameter"]
    resources = ["arn:${local.partition}:ssm:*::parameter/aws/service/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }
  }

  statement {
    sid       = "PassMachineRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.machine.arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["ec2.amazonaws.com"]
    }
  }

  # Price lists and the account's plan have no resource that a policy could name.
  statement {
    sid       = "Account"
    actions   = ["pricing:GetProducts", "freetier:GetAccountPlanState"]
    resources = ["*"]
  }

  statement {
    sid       = "OwnRoles"
    actions   = ["iam:SimulatePrincipalPolicy"]
    resources = ["arn:${local.partition}:iam::${local.account}:role${var.role_path}${var.prefix}-*"]
  }

  statement {
    sid       = "MachineProfile"
    actions   = ["iam:GetInstanceProfile"]
    resources = [aws_iam_instance_profile.machine.arn]
  }

  statement {
    sid       = "MachineRole"
    actions   = ["iam:ListAttachedRolePolicies"]
    resources = [aws_iam_role.machine.arn]
  }

  statement {
    sid     = "SpotRole"
    actions = ["iam:GetRole"]
    resources = [
      "arn:${local.partition}:iam::${local.account}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot",
    ]
  }

  statement {
    sid       = "Grants"
    actions   = ["sts:AssumeRole"]
    resources = [aws_iam_role.grant.arn]
  }
}

resource "aws_iam_role_policy" "worker_machines" {
  name   = "machines"
  role   = aws_iam_role.worker.name
  policy = data.aws_iam_policy_document.machines.json
}

data "aws_iam_policy_document" "store" {
  statement {
    sid = "Objects"
    actions = [
      "s3:GetObject",
      "s3:PutObject",
      "s3:DeleteObject",
      "s3:AbortMultipartUpload",
      "s3:ListMultipartUploadParts",
    ]
    resources = ["${local.bucket}/*"]
  }

  statement {
    sid       = "Bucket"
    actions   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
    resources = [local.bucket]
  }
}

resource "aws_iam_role_policy" "worker_store" {
  name   = "store"
  role   = aws_iam_role.worker.name
  policy = data.aws_iam_policy_document.store.json
}

resource "aws_iam_role_policy" "grant_store" {
  name   = "store"
  role   = aws_iam_role.grant.name
  policy = data.aws_iam_policy_document.store.json
}

data "aws_iam_policy_document" "key" {
  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringLike"
      variable = "kms:ViaService"
      values   = ["s3.*"]
    }
  }
}

resource "aws_iam_role_policy" "worker_key" {
  count  = var.kms_key_arn == null ? 0 : 1
  name   = "key"
  role   = aws_iam_role.worker.name
  policy = data.aws_iam_policy_document.key.json
}

resource "aws_iam_role_policy" "grant_key" {
  count  = var.kms_key_arn == null ? 0 : 1
  name   = "key"
  role   = aws_iam_role.grant.name
  policy = data.aws_iam_policy_document.key.json
}

# EC2 accepts a launch whose caller may not use the key, and ends the machine at once.
data "aws_iam_policy_document" "disk_keys" {
  statement {
    sid = "DiskKeys"
    actions = [
      "kms:Decrypt",
      "kms:DescribeKey",
      "kms:GenerateDataKeyWithoutPlaintext",
      "kms:ReEncryptFrom",
      "kms:ReEncryptTo",
    ]
    resources = var.disk_key_arns
  }

  statement {
    sid       = "DiskKeyGrants"
    actions   = ["kms:CreateGrant"]
    resources = var.disk_key_arns

    condition {
      test     = "Bool"
      variable = "kms:GrantIsForAWSResource"
      values   = ["true"]
    }
  }
}

resource "aws_iam_role_policy" "worker_disk_keys" {
  count  = length(var.disk_key_arns) == 0 ? 0 : 1
  name   = "disk-keys"
  role   = aws_iam_role.worker.name
  policy = data.aws_iam_policy_document.disk_keys.json
}

# Capacity Blocks can be bought without our tags, by people. An on-demand reservation must be tagged, and only tagged ones are changed
# and given back.
data "aws_iam_policy_document" "buy" {
  # Offers and lists have no resource that a policy could name. People compare Regions.
  statement {
    sid = "Offers"
    actions = [
      "ec2:DescribeInstanceTypes",
      "ec2:DescribeCapacityReservations",
      "ec2:DescribeCapacityBlockOfferings",
      "ec2:DescribeCapacityBlockExtensionOfferings",
      "ec2:DescribeCapacityBlockExtensionHistory",
      "ec2:DescribeCapacityReservationCancellationQuotes",
    ]
    resources = ["*"]
  }

  statement {
    sid       = "Blocks"
    actions   = ["ec2:PurchaseCapacityBlock", "ec2:PurchaseCapacityBlockExtension"]
    resources = ["${local.ec2}:capacity-reservation/*", "${local.ec2}:capacity-block/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }
  }

  statement {
    sid       = "TaggedReservations"
    actions   = ["ec2:CreateCapacityReservation"]
    resources = ["${local.ec2}:capacity-reservation/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringLike"
      variable = "aws:RequestTag/crucible:deployment"
      values   = [var.deployment]
    }
  }

  statement {
    sid = "OwnReservations"
    actions = [
      "ec2:ModifyCapacityReservation",
      "ec2:CancelCapacityReservation",
      "ec2:CreateCapacityReservationBySplitting",
      "ec2:CreateCapacityReservationCancellationQuote",
      "ec2:CreateCapacityReservationDateChangeQuote",
    ]
    resources = ["${local.ec2}:capacity-reservation/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringLike"
      variable = "aws:ResourceTag/crucible:deployment"
      values   = [var.deployment]
    }
  }

  statement {
    sid       = "TagsAtPurchase"
    actions   = ["ec2:CreateTags"]
    resources = ["${local.ec2}:*/*"]

    condition {
      test     = "StringEquals"
      variable = "aws:RequestedRegion"
      values   = var.regions
    }

    condition {
      test     = "StringEquals"
      variable = "ec2:CreateAction"
      values = [
        "PurchaseCapacityBlock",
        "CreateCapacityReservation",
        "CreateCapacityReservationBySplitting",
      ]
    }
  }
}

resource "aws_iam_role_policy" "buyer_buy" {
  name   = "buy"
  role   = aws_iam_role.buyer.name
  policy = data.aws_iam_policy_document.buy.json
}

data "aws_iam_policy_document" "buying" {
  statement {
    sid       = "Buying"
    actions   = ["sts:AssumeRole"]
    resources = [aws_iam_role.buyer.arn]
  }
}

resource "aws_iam_role_policy" "worker_buying" {
  count  = var.workers_may_buy ? 1 : 0
  name   = "buying"
  role   = aws_iam_role.worker.name
  policy = data.aws_iam_policy_document.buying.json
}
