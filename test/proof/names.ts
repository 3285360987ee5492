import type { AnyHarness } from '../kit/harness'

/** Every harness: its name, what it proves, and its description, which is loaded when it is run. */
export const HARNESSES: Readonly<Record<string, { about: string; load: () => Promise<AnyHarness> }>> = {
  worlds: {
    about: 'Runs jobs in seeded worlds with a scripted provider.',
    load: async () => (await import('../worlds/harness')).WORLDS,
  },
  clouds: {
    about: 'Runs whole jobs in seeded small clouds (docs/design/clouds.md).',
    load: async () => (await import('../clouds/harness')).CLOUDS,
  },
  crashes: {
    about:
      'Kills processes before, in and after every call of a job on the small cloud (docs/design/chaos.md).',
    load: async () => (await import('../crashes/harnesses/crashes')).CRASHES,
  },
  processes: {
    about:
      'Kills real processes of the built product before, in and after their calls (docs/design/chaos.md).',
    load: async () => (await import('../crashes/harnesses/processes')).PROCESSES,
  },
  blackouts: {
    about: 'Takes the Temporal server away from jobs at work (docs/design/chaos.md).',
    load: async () => (await import('../crashes/harnesses/blackouts')).BLACKOUTS,
  },
  buying: {
    about: 'Kills real processes of the built product at every step of a purchase (docs/design/chaos.md).',
    load: async () => (await import('../crashes/harnesses/buying')).BUYING,
  },
  chaos: {
    about: 'Kills, freezes and starves the real processes of a deployment (docs/design/chaos.md).',
    load: async () => (await import('../chaos/harness')).CHAOS,
  },
  purchases: {
    about: 'Buys capacity while workers die, answers are lost and histories go back.',
    load: async () => (await import('../purchases/harness')).PURCHASES,
  },
  quarters: {
    about: 'Lives four quarters of a retraining schedule with a driven clock.',
    load: async () => (await import('../quarters/harness')).QUARTERS,
  },
  money: {
    about:
      'Lets jobs spend money on random prices, with outages, and compares it with the bill (docs/guides/money.md).',
    load: async () => (await import('../money/harness')).MONEY,
  },
  torn: {
    about: 'Tears checkpoint uploads by the thousand.',
    load: async () => (await import('../torn/harness')).TORN,
  },
  habits: {
    about: 'Interrupts programs that save in many ways (docs/design/habits.md).',
    load: async () => (await import('../habits/harness')).HABITUAL,
  },
  rehearsals: {
    about:
      'Rehearses those programs, and compares each verdict with the expected one (docs/design/habits.md).',
    load: async () => (await import('../habits/harness')).REHEARSALS,
  },
  resumes: {
    about:
      'Kills and resumes the labelled scripts, and those with a suggested change, under their real libraries.',
    load: async () => (await import('../analyze/resumes/harness')).RESUMES,
  },
  checkpointing: {
    about: 'Interrupts programs with the helpers of crucible.checkpoint, with and without notice.',
    load: async () => (await import('../checkpointing/harness')).CHECKPOINTING,
  },
  tracking: {
    about: 'Moves jobs that log to MLflow and W&B: do they continue the same runs?',
    load: async () => (await import('../tracking/harness')).TRACKING,
  },
  attacks: {
    about: 'Tries every attack of docs/guides/security.md.',
    load: async () => (await import('../attacks/harness')).ATTACKS,
  },
  deployment: {
    about:
      "Kills the services of a team's deployment, backs it up and restores it (docs/guides/team-deployment.md).",
    load: async () => (await import('../deployment/harness')).DEPLOYMENT,
  },
}
