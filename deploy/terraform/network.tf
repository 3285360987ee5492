# The network of the machines: in each Region an existing one, or a new one with a public subnet in each zone.

locals {
  new_networks = { for region, network in var.networks : region => network if network.vpc_id == null }

  # By "us-east-1a". The first sixteenth of the range belongs to the first zone.
  subnets = merge([
    for region, network in local.new_networks : {
      for at, zone in network.zones : zone => { region = region, cidr = cidrsubnet("10.42.0.0/16", 4, at) }
    }
  ]...)
}

# Differs from the range of default networks, so that both can be peered.
resource "aws_vpc" "machines" {
  for_each   = local.new_networks
  region     = each.key
  cidr_block = "10.42.0.0/16"
  tags       = merge(local.tags, { Name = var.prefix })
}

resource "aws_internet_gateway" "machines" {
  for_each = local.new_networks
  region   = each.key
  vpc_id   = aws_vpc.machines[each.key].id
  tags     = merge(local.tags, { Name = var.prefix })
}

resource "aws_route_table" "machines" {
  for_each = local.new_networks
  region   = each.key
  vpc_id   = aws_vpc.machines[each.key].id
  tags     = merge(local.tags, { Name = var.prefix })
}

resource "aws_route" "internet" {
  for_each               = local.new_networks
  region                 = each.key
  route_table_id         = aws_route_table.machines[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.machines[each.key].id
}

# Traffic to the store stays inside the network, and is free.
resource "aws_vpc_endpoint" "store" {
  for_each        = local.new_networks
  region          = each.key
  vpc_id          = aws_vpc.machines[each.key].id
  service_name    = "com.amazonaws.${each.key}.s3"
  route_table_ids = [aws_route_table.machines[each.key].id]
  tags            = local.tags
}

resource "aws_subnet" "machines" {
  for_each                = local.subnets
  region                  = each.value.region
  vpc_id                  = aws_vpc.machines[each.value.region].id
  availability_zone       = each.key
  cidr_block              = each.value.cidr
  map_public_ip_on_launch = true
  tags                    = merge(local.tags, { Name = "${var.prefix} ${each.key}" })
}

resource "aws_route_table_association" "machines" {
  for_each       = local.subnets
  region         = each.value.region
  subnet_id      = aws_subnet.machines[each.key].id
  route_table_id = aws_route_table.machines[each.value.region].id
}

# Nothing comes in.
resource "aws_security_group" "machines" {
  for_each    = var.networks
  region      = each.key
  name        = "${var.prefix}-machine"
  description = "Machines of Crucible: nothing comes in"
  vpc_id      = each.value.vpc_id == null ? aws_vpc.machines[each.key].id : each.value.vpc_id
  tags        = merge(local.tags, { Name = "${var.prefix}-machine" })

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}
