import * as ec2 from '@aws-sdk/client-ec2'
import type { AccountPart, Obstacle, Removal, Step, Work } from '../../account'
import { ec2Error } from '../errors'
import { TAGS } from '../tags'
import { failed } from './apply'
import { repeat } from './clients'
import { roleName } from './description'
import type { Site } from './driver'
import { machinesWith, machinesWithProfile } from './machines'
import { driverOf, REMOVAL_ORDER } from './drivers'
import { WHAT, type Piece } from './pieces'

interface Item {
  id: string
  name: string
}

/** Everything that set-up created, in the order of removal, and leftovers of its jobs. */
export async function listAll(
  site: Site,
  wanted: readonly Piece['kind'][] = REMOVAL_ORDER,
): Promise<{ kind: Piece['kind'] | 'template'; items: Item[] }[]> {
  const kinds = await Promise.all(
    wanted.map(async (kind) => ({ kind, items: await driverOf(kind).all(undefined, site) })),
  )
  return [{ kind: 'template', items: await templatesOf(site) }, ...kinds]
}

const partOf = (
  kind: Piece['kind'] | 'template',
  { id, name }: Item,
): Pick<AccountPart, 'id' | 'what' | 'name'> => ({
  ...{ id, what: kind === 'template' ? 'launch template' : WHAT[kind], name },
})

export async function findRemoval(
  site: Site,
  wanted?: readonly Piece['kind'][],
): Promise<Omit<Removal, 'place'>> {
  try {
    const [found, obstacles] = [await listAll(site, wanted), await obstaclesTo(site)]
    const parts = found.flatMap(({ kind, items }) =>
      items.map((item): AccountPart => ({ ...partOf(kind, item), state: 'there', remarks: [] })),
    )
    return { parts, obstacles }
  } catch (error) {
    throw ec2Error(error)
  }
}

export async function removeAll(
  site: Site,
  { signal, onStep, hasData }: Work & { hasData: boolean },
  wanted?: readonly Piece['kind'][],
): Promise<Step[]> {
  const steps: Step[] = []
  for (const { kind, items } of await listAll(site, wanted)) {
    for (const item of items) {
      if (signal.aborted) return steps
      const step = await removeOne(kind, item, { ...site, hasData }).catch(failed)
      if (signal.aborted && step.did === 'failed') return steps
      const told = { part: partOf(kind, item), ...step }
      steps.push(told)
      onStep(told)
    }
  }
  return steps
}

async function removeOne(
  kind: Piece['kind'] | 'template',
  { id }: Item,
  site: Site & { hasData: boolean },
): Promise<Omit<Step, 'part'>> {
  if (kind === 'template') {
    const command = new ec2.DeleteLaunchTemplateCommand({ LaunchTemplateId: id })
    await repeat(() => site.clients.ec2.send(command, { abortSignal: site.signal }), site.signal)
    return { did: 'removed' }
  }
  const gone = await driverOf(kind).remove(id, site)
  return gone === undefined ? { did: 'removed' } : { did: 'kept', reason: gone.kept }
}

/** The backend creates templates as needed; those with our profile are useless once the profile is gone. */
async function templatesOf({ clients, choices, signal }: Site): Promise<Item[]> {
  const options = { abortSignal: signal }
  const Filters = [{ Name: 'tag-key', Values: [TAGS.deployment] }]
  const templates = await repeat(async () => {
    const found: ec2.LaunchTemplate[] = []
    const pages = ec2.paginateDescribeLaunchTemplates({ client: clients.ec2 }, { Filters }, options)
    for await (const { LaunchTemplates } of pages) found.push(...(LaunchTemplates ?? []))
    return found
  }, signal)
  const profile = roleName(choices.prefix, 'machine')
  const found = await Promise.all(
    templates.map(async ({ LaunchTemplateId: id = '', LaunchTemplateName: name = id }) => {
      const command = new ec2.DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId: id })
      const { LaunchTemplateVersions = [] } = await repeat(() => clients.ec2.send(command, options), signal)
      const isOurs = LaunchTemplateVersions.some(
        ({ LaunchTemplateData }) => LaunchTemplateData?.IamInstanceProfile?.Name === profile,
      )
      return isOurs ? [{ id, name }] : []
    }),
  )
  return found.flat()
}

async function obstaclesTo(site: Site): Promise<Obstacle[]> {
  const ids = (await machinesOf(site)).map(({ InstanceId = '' }) => InstanceId)
  if (ids.length === 0) return []
  const which = ids.slice(0, 5).join(', ')
  return [
    {
      message: `${ids.length} of its machines are still there: ${which}${ids.length > 5 ? ', ...' : ''}`,
      remedy:
        'Cancel their jobs (`crucible list`, `crucible cancel JOB`), or remove orphaned resources (`crucible gc`).',
    },
  ]
}

/**
 * Machines that depend on what is to be removed: every machine with the profile, and machines of deployments that have no profile any more
 * or use a security group of the set-up.
 */
async function machinesOf(site: Site): Promise<ec2.Instance[]> {
  const [withProfile, tagged, groups] = await Promise.all([
    machinesWithProfile(site),
    machinesWith(site, { Name: 'tag-key', Values: [TAGS.deployment] }),
    driverOf('group').all(undefined, site),
  ])
  const isOurs = ({ IamInstanceProfile, SecurityGroups = [] }: ec2.Instance): boolean =>
    IamInstanceProfile === undefined ||
    SecurityGroups.some(({ GroupId }) => groups.some(({ id }) => id === GroupId))
  const found = [...withProfile, ...tagged.filter(isOurs)]
  return found.filter((one, at) => found.findIndex(({ InstanceId }) => InstanceId === one.InstanceId) === at)
}
