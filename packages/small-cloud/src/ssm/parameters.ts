/** Public parameters: names that refer to images. */
import { z } from 'zod'
import type { Ec2 } from '../ec2/ec2'
import { parametersOf } from '../ec2/region'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'

const NAMES_MAX = 10
/** Time of the last change of the public parameters. */
const CHANGED_AT_SECONDS = Date.UTC(2026, 10, 1) / 1000

export function parameterActions(ec2: Ec2): Record<string, Action> {
  const { world } = ec2.parts
  const find = (region: string, name: string) => {
    const value = parametersOf(world, ec2.region(region)).get(name)
    return value === undefined ? undefined : words(region, name, value)
  }
  return {
    GetParameter: action({
      input: z.strictObject({ Name: z.string(), WithDecryption: z.boolean().optional() }),
      run({ Name }, { region }) {
        const Parameter = find(region, Name)
        if (Parameter === undefined) throw new ApiError('ParameterNotFound', `Parameter ${Name} not found.`)
        return { Parameter }
      },
    }),
    GetParameters: action({
      input: z.strictObject({
        Names: z.array(z.string()).min(1).max(NAMES_MAX),
        WithDecryption: z.boolean().optional(),
      }),
      run({ Names }, { region }) {
        const found = Names.map((name) => find(region, name))
        return {
          Parameters: found.filter((each) => each !== undefined),
          InvalidParameters: Names.filter((_, i) => found[i] === undefined),
        }
      },
    }),
  }
}

function words(region: string, name: string, value: string) {
  return {
    Name: name,
    Type: 'String',
    Value: value,
    Version: 1,
    LastModifiedDate: CHANGED_AT_SECONDS,
    ARN: `arn:aws:ssm:${region}::parameter${name}`,
    DataType: value.startsWith('ami-') ? 'aws:ec2:image' : 'text',
  }
}
