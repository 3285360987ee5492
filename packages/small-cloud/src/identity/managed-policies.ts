/** The managed policies for worlds, limited to the services implemented here. */
import type { Policy } from './policy'

const allow = (actions: string[]): Policy => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action: actions, Resource: ['*'], Condition: {} }],
})

const MANAGED: Readonly<Record<string, Policy>> = {
  AdministratorAccess: allow(['*']),
  AmazonEC2ContainerRegistryReadOnly: allow([
    'ecr:GetAuthorizationToken',
    'ecr:BatchCheckLayerAvailability',
    'ecr:BatchGetImage',
    'ecr:GetDownloadUrlForLayer',
    'ecr:GetRepositoryPolicy',
    'ecr:DescribeRepositories',
    'ecr:ListImages',
    'ecr:DescribeImages',
  ]),
  AmazonEC2FullAccess: allow(['ec2:*', 'iam:CreateServiceLinkedRole']),
  AmazonEC2ReadOnlyAccess: allow(['ec2:Describe*', 'ec2:GetConsoleOutput']),
  AmazonS3FullAccess: allow(['s3:*']),
  AmazonS3ReadOnlyAccess: allow(['s3:Get*', 's3:List*']),
  AmazonSSMFullAccess: allow(['ssm:*', 'ssmmessages:*', 'ec2messages:*']),
  AmazonSSMManagedInstanceCore: allow([
    'ssm:DescribeAssociation',
    'ssm:GetDocument',
    'ssm:DescribeDocument',
    'ssm:GetManifest',
    'ssm:GetParameter',
    'ssm:GetParameters',
    'ssm:ListAssociations',
    'ssm:ListInstanceAssociations',
    'ssm:PutInventory',
    'ssm:UpdateInstanceInformation',
    'ssmmessages:*',
    'ec2messages:*',
  ]),
}

export const MANAGED_NAMES = Object.keys(MANAGED)

export function managedPolicy(name: string): Policy | undefined {
  return MANAGED[name]
}
