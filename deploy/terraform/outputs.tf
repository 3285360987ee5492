# For the environment of clients and workers: the same as after `crucible setup aws`.
output "settings" {
  value = merge(
    {
      CRUCIBLE_BACKENDS            = "ec2"
      CRUCIBLE_EC2_REGIONS         = join(",", var.regions)
      CRUCIBLE_EC2_PROFILE         = aws_iam_instance_profile.machine.name
      CRUCIBLE_GRANT_ROLE          = aws_iam_role.grant.arn
      CRUCIBLE_EC2_SECURITY_GROUPS = join(",", [for region in var.regions : aws_security_group.machines[region].id])
      CRUCIBLE_STORE               = "s3://${var.bucket}?region=${var.regions[0]}"
    },
    var.workers_may_buy ? { CRUCIBLE_EC2_BUYER_ROLE = aws_iam_role.buyer.arn } : {},
    length(local.subnets) == 0 ? {} : { CRUCIBLE_EC2_SUBNETS = join(",", values(aws_subnet.machines)[*].id) },
  )
}
