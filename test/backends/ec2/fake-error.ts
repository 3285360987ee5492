import { AwsError } from '../../../backends/ec2/sdk/api'

/** The provider's answer is an error. */
export function answered(code: string, httpStatus = 400): AwsError {
  return new AwsError(`it was ${code}`, { code, httpStatus, reach: 'answered' })
}
