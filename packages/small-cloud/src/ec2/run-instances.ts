/** RunInstances. */
import { z } from 'zod'
import { dryRun, integer, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call } from '../wire/service'
import { depthOf, poolOf, roomIn } from './capacity'
import type { Ec2 } from './ec2'
import { instanceWords } from './instance-words'
import { launch } from './launch'
import { launchFields, merged, templateSpecification } from './launch-fields'
import { planLaunch, spotTagProblem, subnetsFor, type LaunchPlan } from './launch-plan'
import type { Instance, LaunchFields, Subnet } from './model'
import { spotRoleProblem } from './spot-role'
import { findVersion } from './templates'

const input = z.strictObject({
  ...dryRun,
  ...launchFields,
  MinCount: integer,
  MaxCount: integer,
  SubnetId: text.optional(),
  ClientToken: text.optional(),
  LaunchTemplate: templateSpecification.optional(),
})
type RunInput = z.output<typeof input>

/** Maximum number of machines per call. */
const COUNT_MAX = 1000

export function runInstancesActions(ec2: Ec2): Record<string, Action> {
  return {
    RunInstances: action({
      input,
      isMutating: true,
      check: (wish, call) => void prepare(ec2, wish, call),
      run(wish, call) {
        const { plan, subnets, isZonal } = prepare(ec2, wish, call)
        const { ClientToken: token, ...parameters } = wish
        // A token applies to one zone when the launch names one, otherwise to the region.
        const scope = `RunInstances/${call.region}/${isZonal ? subnets[0]!.zone.name : ''}`
        const instances = ec2.tokens.once(scope, { token, parameters }, () =>
          place(ec2, plan, { subnets, wish }),
        )
        if (token !== undefined && instances.every(({ history }) => history.at(-1)!.state === 'terminated'))
          throw new ApiError(
            'IdempotentInstanceTerminated',
            'The instances of the request with this client token have been terminated',
          )
        return {
          reservationId: instances[0]!.reservationId,
          ownerId: ec2.account,
          groupSet: [],
          instancesSet: instances.map((each) => instanceWords(each, { atMs: ec2.nowMs })),
        }
      },
    }),
  }
}

function prepare(
  ec2: Ec2,
  wish: RunInput,
  call: Call,
): { plan: LaunchPlan; subnets: Subnet[]; isZonal: boolean } {
  const { MinCount: least, MaxCount: most } = wish
  if (least < 1 || most < least || most > COUNT_MAX)
    throw new ApiError(
      'InvalidParameterValue',
      `Value (${least}, ${most}) for parameter MinCount, MaxCount is invalid. Expecting 1 <= MinCount <= MaxCount <= ${COUNT_MAX}.`,
    )
  const version = wish.LaunchTemplate && findVersion(ec2, call, wish.LaunchTemplate)
  const fields: LaunchFields & { SubnetId?: string | undefined } =
    version === undefined ? wish : { ...merged(version.data, wish), SubnetId: wish.SubnetId }
  const plan = planLaunch(ec2, call, fields)
  const problem = spotTagProblem(plan, plan.capacity) ?? spotRoleProblem(ec2, call, plan.capacity)
  if (problem !== undefined) throw problem
  const where = subnetsFor(plan.region, fields)
  return {
    plan:
      version === undefined
        ? plan
        : { ...plan, template: { id: version.templateId, version: version.number } },
    ...where,
  }
}

/** Chooses the subnet with the most capacity; the requested minimum must fit into one subnet. */
function place(
  ec2: Ec2,
  plan: LaunchPlan,
  { subnets, wish }: { subnets: Subnet[]; wish: RunInput },
): Instance[] {
  const deepest = [...subnets].sort((a, b) => depthOf(ec2, poolOf(plan, b)) - depthOf(ec2, poolOf(plan, a)))
  let problem: ApiError | undefined
  for (const subnet of deepest) {
    const room = roomIn(ec2, plan, { subnet, wanted: wish.MaxCount })
    if (room.count >= wish.MinCount)
      return launch(ec2, plan, {
        subnet,
        count: room.count,
        places: room.places,
        reservationId: ec2.parts.ids.resource('r'),
        clientToken: wish.ClientToken ?? '',
      })
    problem ??= room.problem
  }
  throw problem!
}
