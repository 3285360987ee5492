// Third-party AWS clients and servers that verify the small cloud and the EC2 backend: boto3 with botocore's models, the aws CLI, moto, cfn-lint and python-hcl2,
// at the versions of aws-clients.txt. Without them their tests are skipped, with a message.
import { getPythonClients } from './python-clients.mjs'

/** Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. */
export function getAwsClients(home, say) {
  return getPythonClients({ name: 'aws-clients', what: 'boto3, the aws CLI, moto and cfn-lint' }, home, say)
}
