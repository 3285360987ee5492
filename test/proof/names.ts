import type * as worlds from '../worlds/harness'
import type * as clouds from '../clouds/harness'
import type * as crashes from '../crashes/harnesses/crashes'
import type * as processes from '../crashes/harnesses/processes'
import type * as blackouts from '../crashes/harnesses/blackouts'
import type * as buying from '../crashes/harnesses/buying'
import type * as chaos from '../chaos/harness'
import type * as clocks from '../clocks/harness'
import type * as dates from '../dates/harness'
import type * as purchases from '../purchases/harness'
import type * as quarters from '../quarters/harness'
import type * as money from '../money/harness'
import type * as torn from '../torn/harness'
import type * as habits from '../habits/harness'
import type * as resumes from '../analyze/resumes/harness'
import type * as checkpointing from '../checkpointing/harness'
import type * as tracking from '../tracking/harness'
import type * as attacks from '../attacks/harness'
import type * as beats from '../beats/harness'
import type * as hostile from '../hostile/harness'
import type * as slowStore from '../slow-store/harness'
import type * as fuzz from '../fuzz/harness'
import type * as storeRequests from '../store-requests/harness'
import type * as deployment from '../deployment/harness'
import type { AnyHarness } from '../kit/harness'

/** Every harness: its name, what it proves, and its description, which is loaded when it is run. */
export const HARNESSES: Readonly<Record<string, { about: string; load: () => AnyHarness }>> = {
  worlds: {
    about: 'Runs jobs in seeded worlds with a scripted provider.',
    load: () => (require('../worlds/harness') as typeof worlds).WORLDS,
  },
  clouds: {
    about: 'Runs whole jobs in seeded small clouds (docs/design/clouds.md).',
    load: () => (require('../clouds/harness') as typeof clouds).CLOUDS,
  },
  crashes: {
    about:
      'Kills processes before, in and after every call of a job on the small cloud (docs/design/chaos.md).',
    load: () => (require('../crashes/harnesses/crashes') as typeof crashes).CRASHES,
  },
  processes: {
    about:
      'Kills real processes of the built product before, in and after their calls (docs/design/chaos.md).',
    load: () => (require('../crashes/harnesses/processes') as typeof processes).PROCESSES,
  },
  blackouts: {
    about: 'Takes the Temporal server away from jobs at work (docs/design/chaos.md).',
    load: () => (require('../crashes/harnesses/blackouts') as typeof blackouts).BLACKOUTS,
  },
  buying: {
    about: 'Kills real processes of the built product at every step of a purchase (docs/design/chaos.md).',
    load: () => (require('../crashes/harnesses/buying') as typeof buying).BUYING,
  },
  chaos: {
    about: 'Kills, freezes and starves the real processes of a deployment (docs/design/chaos.md).',
    load: () => (require('../chaos/harness') as typeof chaos).CHAOS,
  },
  clocks: {
    about: 'Sets the wall clocks of a deployment with a job in every state.',
    load: () => (require('../clocks/harness') as typeof clocks).CLOCKS,
  },
  dates: {
    about: 'Takes a part of a deployment away at the moment of a scheduled run.',
    load: () => (require('../dates/harness') as typeof dates).DATES,
  },
  purchases: {
    about: 'Buys capacity while workers die, answers are lost and histories go back.',
    load: () => (require('../purchases/harness') as typeof purchases).PURCHASES,
  },
  quarters: {
    about: 'Lives four quarters of a retraining schedule with a driven clock.',
    load: () => (require('../quarters/harness') as typeof quarters).QUARTERS,
  },
  money: {
    about:
      'Lets jobs spend money on random prices, with outages, and compares it with the bill (docs/guides/money.md).',
    load: () => (require('../money/harness') as typeof money).MONEY,
  },
  torn: {
    about: 'Tears checkpoint uploads by the thousand.',
    load: () => (require('../torn/harness') as typeof torn).TORN,
  },
  habits: {
    about: 'Interrupts programs that save in many ways (docs/design/habits.md).',
    load: () => (require('../habits/harness') as typeof habits).HABITUAL,
  },
  rehearsals: {
    about:
      'Rehearses those programs, and compares each verdict with the expected one (docs/design/habits.md).',
    load: () => (require('../habits/harness') as typeof habits).REHEARSALS,
  },
  resumes: {
    about:
      'Kills and resumes the labelled scripts, and those with a suggested change, under their real libraries.',
    load: () => (require('../analyze/resumes/harness') as typeof resumes).RESUMES,
  },
  checkpointing: {
    about: 'Interrupts programs with the helpers of crucible.checkpoint, with and without notice.',
    load: () => (require('../checkpointing/harness') as typeof checkpointing).CHECKPOINTING,
  },
  tracking: {
    about: 'Moves jobs that log to MLflow and W&B: do they continue the same runs?',
    load: () => (require('../tracking/harness') as typeof tracking).TRACKING,
  },
  'store-requests': {
    about: "Sends requests drawn from S3's grammar with ten grants, and looks at the disk.",
    load: () => (require('../store-requests/harness') as typeof storeRequests).STORE_REQUESTS,
  },
  attacks: {
    about: 'Tries every attack of docs/guides/security.md.',
    load: () => (require('../attacks/harness') as typeof attacks).ATTACKS,
  },
  beats: {
    about: 'Lets jobs with hostile output, files and patterns run on real runners, and watches the beats.',
    load: () => (require('../beats/harness') as typeof beats).BEATS,
  },
  hostile: {
    about: 'Lets one job do everything that a hostile job can, next to another (docs/guides/security.md).',
    load: () => (require('../hostile/harness') as typeof hostile).HOSTILE_JOB,
  },
  'slow-store': {
    about: 'Makes each operation of a file store slow, or hang, under running jobs.',
    load: () => (require('../slow-store/harness') as typeof slowStore).SLOW_STORE,
  },
  fuzz: {
    about: 'Gives hostile texts to every reader of texts of strangers (docs/guides/security.md).',
    load: () => (require('../fuzz/harness') as typeof fuzz).FUZZ,
  },
  deployment: {
    about:
      "Kills the services of a team's deployment, backs it up and restores it (docs/guides/team-deployment.md).",
    load: () => (require('../deployment/harness') as typeof deployment).DEPLOYMENT,
  },
}
