import type { Expectation } from '../../client/job/expect'
import type { JobSpec } from '../../core/job/job'
import { expectedInWords } from '../../core/job/forecast'
import { formatUsd } from '../../core/money/money'
import { priceInWords } from '../../core/offer'
import type { Placement, PlacementInShort } from '../../core/job/plan'
import type { Cli } from '../cli'

/** Width of the labels, below which the rest of a long line continues. */
const LABEL_WIDTH = 10

/** Shows where a job will run and what that costs, before it is submitted. */
export function showExpected(
  cli: Cli,
  spec: JobSpec,
  { expectation: { plan, warnings }, isNote }: { expectation: Expectation; isNote: boolean },
): void {
  const { out } = cli
  const say = isNote
    ? (text: string): void => out.note(text)
    : (text: string): void => out.prose(text, LABEL_WIDTH)
  const [best] = plan?.placements ?? []
  if (best !== undefined) {
    say(`  machine   ${machineInWords(best)}`)
    say(`  cost      ${costInWords(best)}`)
    say(`  budget    ${spec.budgetMicroUsd === undefined ? 'none' : formatUsd(spec.budgetMicroUsd)}`)
  }
  for (const warning of warnings) out.warn(cli.asCalled(warning))
}

function machineInWords({ offer }: Placement): string {
  const where = offer.place === '' ? offer.type : `${offer.type} in ${offer.place}`
  return `${offer.backend} ${offer.capacityType}, ${where}, ${priceInWords(offer)}`
}

function costInWords(placement: Placement): string {
  const { costMicroUsd, forecast } = placement
  const isFree = costMicroUsd === 0 && forecast.cost.highMicroUsd === 0
  return isFree ? 'nothing' : `about ${expectedInWords(placement)}, the ranges with 90 % probability`
}

/** Asks at a terminal before a job may spend money. A job that cannot spend any is not asked about. */
export async function isSubmissionAgreed(cli: Cli, { plan }: Expectation, isSure: boolean): Promise<boolean> {
  if (isSure || !cli.confirmsSubmit || !cli.out.isTerminal) return true
  if (plan !== undefined && isFree(plan, cli.simulated)) return true
  const question =
    plan === undefined
      ? 'No worker answers, so the cost is unknown. Submit the job?'
      : 'This may spend money. Submit the job?'
  return (await cli.confirm(question)) ?? true
}

/** Whether every place where the job may run costs nothing. A simulated provider sends no bill. */
function isFree(
  { placements, others, silentBackends }: NonNullable<Expectation['plan']>,
  simulated: readonly string[],
): boolean {
  const all = [...placements, ...others]
  const isFreeAt = ({ costMicroUsd, offer: { backend } }: PlacementInShort): boolean =>
    costMicroUsd === 0 || simulated.includes(backend)
  return silentBackends.length === 0 && all.length > 0 && all.every(isFreeAt)
}
