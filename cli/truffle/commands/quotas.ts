import type { Command } from 'commander'
import {
  findQuotas,
  increaseCommand,
  parsePattern,
  quotaFamilies,
  searchTypes,
  type Inquiry,
  type VcpuQuota,
} from '../../../backends/ec2/capacity'
import { CrucibleError } from '../../../client/errors'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import { addShared, listArgument, type SharedOptions } from '../options'
import { unansweredRows, type Session } from '../session'

interface Options extends SharedOptions {
  instanceTypes?: string[]
  gpuOnly?: true
  request?: number
}

const VCPUS_MAX = 1_000_000
const COLUMNS = [
  'region',
  'family',
  'market',
  'quota_code',
  'limit_vcpus',
  'used_vcpus',
  'available_vcpus',
  'request',
]

export function define(command: Command, session: Session): void {
  command.description(
    'Show how many vCPUs the account may run in each Region, by family and market, and what running machines use. A quota is a permission, ' +
      'not capacity. Machines in a Capacity Block count against none.',
  )
  addShared(
    command
      .argument('[types...]', 'only the quotas of these types or families')
      .option('--instance-types <list>', 'the same', listArgument)
      .option('--gpu-only', 'only families with GPUs or other accelerators')
      .option('--request <vcpus>', 'print the commands that ask AWS for this many', countArgument(VCPUS_MAX)),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle quotas --regions us-east-1', 'all families of one Region'],
        ['truffle quotas p5.48xlarge', 'the quota for p5.48xlarge in every Region'],
        ['truffle quotas p5 --request 192 --regions us-east-1', 'the command that requests an increase'],
      ),
    )
    .action((types: string[], options: Options) => quotas(session, types, options))
}

const ACCELERATED = ['P', 'G and VT', 'Trn', 'Inf', 'DL']

async function quotas(session: Session, given: string[], options: Options): Promise<void> {
  const types = [...given.flatMap((text) => listArgument(text)), ...(options.instanceTypes ?? [])].map(
    (type) => type.toLowerCase(),
  )
  const inquiry = session.inquiry(options)
  const named = types.includes('all') ? [] : await namesOf(inquiry, types)
  const { codes, unknown } = quotaFamilies(named.map((type) => (/\d/.test(type) ? type : `${type}1`)))
  if (unknown.length > 0)
    throw new CrucibleError(
      'usage',
      `No vCPU quota is known for ${unknown.map((type) => type.replace(/1$/, '')).join(', ')}.`,
      {
        hint: 'Write types or families such as p5.48xlarge, g6 or trn1.',
      },
    )
  const families = options.gpuOnly === true ? codes.filter(({ words }) => ACCELERATED.includes(words)) : codes
  const { answers, unanswered } = await findQuotas(inquiry, families)
  const found = answers.flatMap(({ value }) => value.quotas).sort((a, b) => a.region.localeCompare(b.region))
  const commands = commandsFor(found, options.request)
  session.answer({
    command: 'quotas',
    results: found.map((quota) => ({
      region: quota.region,
      family: quota.family,
      market: quota.market,
      quota_code: quota.code,
      limit_vcpus: quota.limit ?? null,
      used_vcpus: quota.used ?? null,
      available_vcpus: availableIn(quota) ?? null,
      request: quota.request ?? null,
    })),
    columns: COLUMNS,
    more: options.request !== undefined ? { request_commands: commands } : undefined,
    unanswered: unansweredRows(unanswered),
    notes: [...answers.flatMap(({ value }) => value.notes), ...(await inquiry.notes())],
    show: (out) => {
      out.table(
        ['Region', 'Family', 'Market', 'Limit', 'In Use', 'Available', 'Code', 'Request'],
        found.map((quota) => [
          quota.region,
          quota.family,
          quota.market,
          cell(quota.limit),
          cell(quota.used),
          cell(availableIn(quota)),
          quota.code,
          quota.request ?? '-',
        ]),
        { right: ['Limit', 'In Use', 'Available'], flexible: ['Request'], optional: ['Code'] },
      )
      if (commands.length > 0)
        out.block(`\nTo ask for more:\n${commands.map((one) => `   ${one}`).join('\n')}`)
    },
  })
}

/** Replaces an accelerator by the types that have it. */
async function namesOf(inquiry: Inquiry, given: readonly string[]): Promise<string[]> {
  const all = await Promise.all(
    given.map(async (text) => {
      const pattern = parsePattern(text)
      if (!pattern.isAccelerator) return [text]
      const { answers } = await searchTypes(inquiry, { patterns: [pattern] }, { hasZones: false })
      return answers.flatMap(({ value }) => value.map(({ type }) => type.name))
    }),
  )
  return [...new Set(all.flat())]
}

const cell = (vcpus: number | undefined): string => (vcpus === undefined ? '-' : String(vcpus))

/** vCPUs that the quota still allows, in table and document; undefined if limit or use is unknown. */
function availableIn({ limit, used }: VcpuQuota): number | undefined {
  return limit === undefined || used === undefined ? undefined : Math.max(0, limit - used)
}

/** Returns the commands for requests. A quota that is large enough, or already requested, needs none. */
function commandsFor(found: readonly VcpuQuota[], wanted: number | undefined): string[] {
  if (wanted === undefined) return []
  return found
    .filter(({ limit, isRequestOpen }) => (limit ?? 0) < wanted && !isRequestOpen)
    .map((quota) => increaseCommand(quota, wanted))
}
