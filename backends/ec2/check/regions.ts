import type { Problem } from '../../backend'

interface OfRegion {
  region: string
  problems: Problem[]
}

/**
 * Merges problems of several Regions: common ones are listed once, the others with their Region. One Region that can sell machines is
 * enough, so an error in another one is a warning.
 */
export function mergeProblems(found: OfRegion[]): Problem[] {
  const isUsable = found.some(({ problems }) => problems.every(({ severity }) => severity !== 'error'))
  const merged: Problem[] = []
  for (const { region, problems } of found) {
    for (const told of problems) {
      const problem = found.some((each) => isAnswered(each)) ? enabling(told, region) : told
      const isEverywhere = found.every((each) => each.problems.some((one) => isSame(one, problem)))
      const isKnown = merged.some((one) => isSame(one, problem))
      if (isEverywhere && isKnown) continue
      const severity = isUsable && !isEverywhere ? 'warning' : problem.severity
      const message = isEverywhere ? problem.message : `in ${region}: ${problem.message}`
      merged.push({ ...problem, severity, message })
    }
  }
  return merged.sort((a, b) => a.severity.localeCompare(b.severity))
}

/** The keys are valid, because another Region accepts them. */
function isAnswered({ problems }: OfRegion): boolean {
  return !problems.some(({ message }) => isKeyRefused(message))
}

/** Whether a message means that the account has not enabled the Region. */
export function isKeyRefused(message: string): boolean {
  return /AuthFailure|InvalidClientTokenId|UnrecognizedClientException|security token included|validate the provided access credentials/.test(
    message,
  )
}

function enabling(problem: Problem, region: string): Problem {
  if (!isKeyRefused(problem.message)) return problem
  const remedy = `Enable the Region for the account: aws account enable-region --region-name ${region}; or take it out of CRUCIBLE_EC2_REGIONS.`
  return { ...problem, remedy }
}

function isSame(a: Problem, b: Problem): boolean {
  return a.message === b.message && a.remedy === b.remedy
}
