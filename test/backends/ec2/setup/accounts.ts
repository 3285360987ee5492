/** A small cloud in which the template was deployed. */
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { storeFrontOver } from '../../../../cli/dev/versitygw/front'
import { testFolder } from '../../../support/folders'
import { testVersitygw } from '../../../support/s3'
import { evaluateTemplate, type Template } from './template'

/** moto's, which cannot be chosen. */
export const ACCOUNT = '123456789012'
export const BUCKET = `crucible-${ACCOUNT}-us-east-1`

export function preparedTemplate(parameters: Record<string, string> = {}): Template {
  return evaluateTemplate({
    account: ACCOUNT,
    parameters: { Regions: 'us-east-1', Bucket: BUCKET, VpcId: 'vpc-default', ...parameters },
  })
}

/** The roles, group and bucket of the template in a Region that has a default network. */
export async function preparedAccount(
  world: WorldText = {},
  parameters: Record<string, string> = {},
): Promise<Cloud> {
  const template = preparedTemplate(parameters)
  const executable = await testVersitygw()
  return startCloud({
    world: {
      account: ACCOUNT,
      regions: {
        'us-east-1': { zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'], groups: ['crucible-machine'] },
      },
      linkedRoles: ['spot.amazonaws.com'],
      throttling: 'off',
      roles: rolesOf(template),
      ...world,
    },
    startFront: storeFrontOver({ executable, directory: testFolder('account'), buckets: [BUCKET] }),
  })
}

/** The roles of the template as a world has them. */
export function rolesOf(template: Template): NonNullable<WorldText['roles']> {
  const roles = Object.values(template.resources).filter(({ Type }) => Type === 'AWS::IAM::Role')
  return Object.fromEntries(
    roles.map(({ Properties }) => {
      const name = Properties.RoleName as string
      const [{ Principal }] = Properties.AssumeRolePolicyDocument.Statement
      const policies = Object.entries(template.policiesOf(name)).map(([policy, Statement]) => [
        policy,
        { Version: '2012-10-17', Statement },
      ])
      const role = {
        path: Properties.Path as string,
        policies: Object.fromEntries(policies),
        trusts: [Principal.Service ?? 'account'],
        sessionMax: `${Properties.MaxSessionDuration ?? 3600}s`,
        hasProfile: name === 'crucible-machine',
      }
      return [name, role]
    }),
  )
}
