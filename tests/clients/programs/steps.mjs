// What a program here prints: a line of JSON for each step, whatever became of it.
export async function step(name, action, note = "") {
  try {
    await action();
    console.log(JSON.stringify({ step: name, ok: true, note }));
  } catch (failure) {
    console.error(failure);
    console.log(JSON.stringify({ step: name, ok: false, note: String(failure?.message ?? JSON.stringify(failure)).slice(0, 300) }));
  }
}
