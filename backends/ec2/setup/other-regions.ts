import type { AccountPart, QuotaState, Removal, Step, Work } from '../../account'
import { applyAll, readPiece } from './apply'
import { networkOf, type Choices } from './description'
import type { Site } from './driver'
import type { Piece } from './pieces'
import { REMOVAL_ORDER } from './drivers'
import { findRemoval, removeAll } from './remove'

/** The pieces that each Region has separately; roles and the store belong to the account. */
const REGIONAL: readonly Piece['kind'][] = REMOVAL_ORDER.filter(
  (kind) => !['role', 'profile', 'linked-role', 'bucket'].includes(kind),
)

export function regionsOf({ region, moreRegions = [] }: Choices): string[] {
  return [region, ...moreRegions]
}

/** The same part with its Region in the name, because each Region has one. */
function named<P extends Pick<AccountPart, 'id' | 'name'>>(part: P, { choices: { region } }: Site): P {
  return { ...part, name: `${part.name} in ${region}` }
}

export async function readOther(site: Site): Promise<AccountPart[]> {
  const parts: AccountPart[] = []
  for (const piece of networkOf(site.choices)) parts.push(named(await readPiece(piece, site), site))
  return parts.map((part) => ({ ...part, id: `${part.id}@${site.choices.region}` }))
}

export function otherRemark({ choices: { region, network } }: Site): string {
  return 'vpcId' in network
    ? `In ${region} machines go into the default network ${network.vpcId}.`
    : `In ${region} machines go into a network of their own.`
}

/** One Region after the other. A failure in one does not stop the others. */
export async function applyOthers(sites: Site[], { signal, onStep }: Work): Promise<Step[]> {
  const steps: Step[] = []
  for (const site of sites) {
    const told: Work = { signal, onStep: (step) => onStep({ ...step, part: named(step.part, site) }) }
    const done = await applyAll(site, told, networkOf(site.choices))
    steps.push(...done.map((step) => ({ ...step, part: named(step.part, site) })))
  }
  return steps
}

export async function quotasOf(
  sites: Site[],
  ask: (site: Site) => Promise<QuotaState[]>,
): Promise<QuotaState[]> {
  const found = await Promise.all(
    sites.map(async (site) =>
      (await ask(site)).map((quota) => ({ ...quota, name: `${quota.name} in ${site.choices.region}` })),
    ),
  )
  return found.flat()
}

export async function findOthers(sites: Site[]): Promise<Omit<Removal, 'place'>> {
  const found = await Promise.all(
    sites.map(async (site) => {
      const { parts, obstacles } = await findRemoval(site, REGIONAL)
      return { parts: parts.map((part) => named(part, site)), obstacles }
    }),
  )
  return {
    parts: found.flatMap(({ parts }) => parts),
    obstacles: found.flatMap(({ obstacles }) => obstacles),
  }
}

export async function removeOthers(sites: Site[], work: Work & { hasData: boolean }): Promise<Step[]> {
  const steps: Step[] = []
  for (const site of sites) {
    const onStep = (step: Step): void => work.onStep({ ...step, part: named(step.part, site) })
    const done = await removeAll(site, { ...work, onStep }, REGIONAL)
    steps.push(...done.map((step) => ({ ...step, part: named(step.part, site) })))
  }
  return steps
}
