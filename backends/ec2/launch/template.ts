import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRunnerFile } from '../../bootstrap'
import type { TemplateSpec } from '../sdk/api'
import { TAGS } from '../tags'

/** What a launch template says, apart from what it always says. As text, because it stands in the offer's data. */
export interface TemplateFacts extends Partial<Record<string, string>> {
  image: string
  rootDevice: string
  diskGiB: string
  profile: string
  /** Ids of security groups, with commas between them. */
  groups: string
  /** `none`: its machines take no place of a reservation; missing where the launch says. */
  reservations?: string
  /** `spot`: its launches make spot requests, which it tags. A launch on demand with such a template is refused. */
  market?: string
}

/** What a machine runs at its first boot. The same for all: what concerns one attempt stands in the machine's tags. */
export function readUserData(): string {
  const timer = readRunnerFile('crucible_runner/machine_timer.py').trimEnd()
  return readMachineFile('user-data.sh').replace('@DEAD_MAN@', () => timer)
}

/** A program of those that run on the machine; they lie beside this code. */
export function readMachineFile(name: string): string {
  return readFileSync(join(__dirname, '..', 'machine', name), 'utf8')
}

/** What all templates of one backend have in common. */
export interface TemplateCommon {
  deployment: string
  userData: string
}

/** A template never changes: another content is another name. */
export function templateName(facts: TemplateFacts, { deployment, userData }: TemplateCommon): string {
  const content = JSON.stringify([deployment, Object.entries(facts).sort(), userData])
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
    tags: { Name: name, [TAGS.deployment]: deployment },
  }
}
