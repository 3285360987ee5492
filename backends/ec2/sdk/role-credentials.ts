import { AssumeRoleCommand, type STSClient } from '@aws-sdk/client-sts'
import { AwsError } from './api'
import { awsError } from './errors'

interface TemporaryCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string
  expiration: Date
}

const SESSION_NAME = 'crucible-buyer'

/**
 * Credentials of another role, for a client of the SDK, which asks again shortly before they expire. A failure says that the request itself was
 * not sent: without credentials nothing is bought.
 */
export function roleCredentials(sts: STSClient, RoleArn: string): () => Promise<TemporaryCredentials> {
  return async () => {
    try {
      const command = new AssumeRoleCommand({ RoleArn, RoleSessionName: SESSION_NAME })
      const { Credentials: told } = await sts.send(command)
      return {
        accessKeyId: told!.AccessKeyId!,
        secretAccessKey: told!.SecretAccessKey!,
        sessionToken: told!.SessionToken!,
        expiration: told!.Expiration!,
      }
    } catch (error) {
      const { message, code, remedy, cause } = awsError(error)
      throw new AwsError(`cannot assume the role ${RoleArn}: ${message}`, {
        code,
        reach: 'unsent',
        remedy,
        cause,
      })
    }
  }
}
