import type { Deployment, WorldWishes } from '../workflows/harness'

/** One branch of a workflow: how to live through it, and the workflow whose history tells it. */
export interface Scenario {
  /** `<workflow>.<what happens>`: the history's file is named so. */
  name: string
  wishes?: WorldWishes
  /** A server of its own suggests that workflows continue in a fresh history once they have so many events. */
  suggestsFreshHistoryAfterEvents?: number
  /** Answers the workflow to record, closed: its id, or one run of it. */
  play: (deployment: Deployment) => Promise<string | { workflowId: string; runId: string }>
}
