import type { Deployment, WorldWishes } from '../workflows/harness'

/** One branch of a workflow: how to live through it, and the workflow whose history tells it. */
export interface Scenario {
  /** `<workflow>.<what happens>`: the history's file is named so. */
  name: string
  wishes?: WorldWishes
  /** Answers the id of the workflow to record, closed. */
  play: (deployment: Deployment) => Promise<string>
}
