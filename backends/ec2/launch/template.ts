import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRunnerFile } from '../../bootstrap'
import type { TemplateSpec } from '../sdk/api'
import { readOwnTags } from '../own-tags'
import { TAGS } from '../tags'

/** The variable content of a launch template, as text, because it is part of the offer's data. */
export interface TemplateFacts extends Partial<Record<string, string>> {
  image: string
  rootDevice: string
  diskGiB: string
  profile: string
  /** Ids of security groups, separated by commas. */
  groups: string
  /** `none`: its machines never use a reservation; missing if the launch decides. */
  reservations?: string
  /** `spot`: its launches make spot requests, which it tags. EC2 refuses an on-demand launch with such a template. */
  market?: string
  /** Tags that the account wants (`writeOwnTags`); missing without any. */
  ownTags?: string
}

/** Script of a machine's first boot. The same for all: data of one attempt is in the machine's tags. */
export function readUserData(): string {
  const timer = readRunnerFile('crucible_runner/machine_timer.py').trimEnd()
  return readMachineFile('user-data.sh').replace('@DEAD_MAN@', () => timer)
}

/** Reads one of the programs for the machine from the folder `machine/`. */
export function readMachineFile(name: string): string {
  return readFileSync(join(__dirname, '..', 'machine', name), 'utf8')
}

/** Properties that all templates of one backend share. */
export interface TemplateCommon {
  deployment: string
  userData: string
}

/** Increased with each change of what a template says for the same facts, because a template never changes. */
const FORMAT = 2

/** A template never changes: another content has another name. */
export function templateName(facts: TemplateFacts, { deployment, userData }: TemplateCommon): string {
  const content = JSON.stringify([FORMAT, deployment, Object.entries(facts).sort(), userData])
  return `crucible-${createHash('sha256').update(content).digest('hex').slice(0, 16)}`
}

export function templateSpec(
  name: string,
  facts: TemplateFacts,
  { deployment, userData }: TemplateCommon,
): TemplateSpec {
  return {
    name,
    image: facts.image,
    profile: facts.profile,
    securityGroups: facts.groups.split(','),
    rootDevice: facts.rootDevice,
    diskGiB: Number(facts.diskGiB),
    userData,
    avoidsReservations: facts.reservations === 'none',
    tagsSpotRequests: facts.market === 'spot',
    tags: { ...readOwnTags(facts), Name: name, [TAGS.deployment]: deployment },
  }
}
