/** Actions of roles other than the workers'. */

/** What the agent of Systems Manager needs to take commands: `AmazonSSMManagedInstanceCore` without the right to read parameters. */
export const AGENT_ACTIONS: readonly string[] = [
  'ssm:UpdateInstanceInformation',
  'ssm:ListAssociations',
  'ssm:ListInstanceAssociations',
  'ssmmessages:CreateControlChannel',
  'ssmmessages:CreateDataChannel',
  'ssmmessages:OpenControlChannel',
  'ssmmessages:OpenDataChannel',
  'ec2messages:AcknowledgeMessage',
  'ec2messages:DeleteMessage',
  'ec2messages:FailMessage',
  'ec2messages:GetEndpoint',
  'ec2messages:GetMessages',
  'ec2messages:SendReply',
]

/** What pulling from Amazon's own registry needs. */
export const IMAGE_ACTIONS: readonly string[] = [
  'ecr:GetAuthorizationToken',
  'ecr:BatchCheckLayerAvailability',
  'ecr:BatchGetImage',
  'ecr:GetDownloadUrlForLayer',
]
